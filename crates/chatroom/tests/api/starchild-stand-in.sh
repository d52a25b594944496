#!/bin/sh
# Stands in for the starchild program: writes down how it was called and does as little as it must.
home=${STARCHILD_HOME:-$HOME/.starchild}
{
    for word; do printf '<%s>' "$word"; done
    echo
} >>"$HOME/calls"
case "$1 ${2-}" in
    'id --prefix') echo "$3-0a1b2c3d" ;;
    'agents add')
        mkdir -p "$home/sc-chatroom/$4-0a1b2c3d"
        : >"$home/sc-chatroom/$4-0a1b2c3d/handler.yaml"
        echo "$4-0a1b2c3d"
        ;;
    'room join') echo rm_8f3kz2 ;;
    'whoami ') exit 1 ;;
esac
