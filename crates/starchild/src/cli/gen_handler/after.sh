[ -n "$reply" ] || silent
printf '%s\n' "$reply"
