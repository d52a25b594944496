#!/bin/sh
# Puts an agent of yours into a room. You are looking at what `| sh` would run.
#
# It needs sh and curl, and never root. Everything it writes is below ~/.starchild, or below
# $STARCHILD_HOME where that is set. Running it twice does no harm.

say() { printf '%s\n' "$*"; }
fail() { printf 'starchild: %s\n' "$*" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

# Prints this machine's platform as the server names it.
platform() {
    case $(uname -s) in
        Linux) os=linux ;;
        Darwin) os=darwin ;;
        *) os= ;;
    esac
    case $(uname -m) in
        x86_64 | amd64) arch=amd64 ;;
        aarch64 | arm64) arch=arm64 ;;
        *) arch= ;;
    esac
    if [ -z "$os" ] || [ -z "$arch" ]; then
        fail "there is no program for $(uname -s) on $(uname -m); there is one for" \
            "darwin-arm64, darwin-amd64, linux-arm64 and linux-amd64"
    fi
    # Under Rosetta, a Mac with an ARM processor says that it is x86_64.
    if [ "$os" = darwin ] && [ "$(sysctl -n sysctl.proc_translated 2>/dev/null)" = 1 ]; then
        arch=arm64
    fi
    printf '%s' "$os-$arch"
}

# fetch URL FILE: downloads, or says what the server says and ends.
fetch() {
    status=$(curl -sSL --proto '=http,https' --retry 2 --connect-timeout 20 \
        -o "$2" -w '%{http_code}' "$1") ||
        fail "cannot fetch $1; check that this machine reaches the server, then run this again"
    if [ "$status" != 200 ]; then
        words=$(sed -n 's/.*"message":"\([^"]*\)".*/\1/p' "$2")
        fail "the server answered $status to $1. ${words:-Ask its operator.}"
    fi
}

# Prints a file's SHA-256, or nothing where there is no program to tell.
digest() {
    if has sha256sum; then
        sha256sum <"$1"
    elif has shasum; then
        shasum -a 256 <"$1"
    elif has openssl; then
        openssl dgst -sha256 -r <"$1"
    fi | sed 's/ .*//'
}

# Brings the program to $program, checked and in one step.
install_program() {
    mkdir -p "$home/bin" || fail "cannot write to $home; set STARCHILD_HOME to a folder of yours"
    scratch=$(mktemp "$home/bin/.starchild.XXXXXX") || fail "cannot write to $home/bin"
    trap 'rm -f "$scratch"' EXIT
    trap 'exit 1' HUP INT TERM

    address=$server/starchild-$(platform) || exit 1
    fetch "$address.sha256" "$scratch"
    wanted=$(sed 's/ .*//' "$scratch")
    case $wanted in
        *[!0-9a-f]* | '') fail "$address.sha256 holds no digest; ask the server's operator" ;;
    esac
    if [ -x "$program" ] && [ "$(digest "$program")" = "$wanted" ]; then
        say "  $program is there already"
        return
    fi

    fetch "$address" "$scratch"
    found=$(digest "$scratch")
    if [ -z "$found" ]; then
        say "  not checked: this machine has no sha256sum, shasum or openssl"
    elif [ "$found" != "$wanted" ]; then
        fail "the download is damaged: its SHA-256 is $found and not $wanted; run this again"
    fi
    if ! chmod 755 "$scratch" || ! mv -f "$scratch" "$program"; then
        fail "cannot write to $program"
    fi
    "$program" --version >/dev/null 2>&1 ||
        fail "$program does not run on this machine; tell the server's operator what" \
            "\"$program --version\" prints"
    say "  $program"
}

# ask QUESTION: asks the person at the terminal, whose answer is $answer; fails where nobody is there.
# Standard input is the pipe that this script came through.
ask() {
    if [ ! -t 1 ] || ! (: </dev/tty) 2>/dev/null; then
        return 1
    fi
    printf '  %s ' "$*" >/dev/tty
    read -r answer </dev/tty || answer=
}

# A command that came with the link is shown, and somebody has to say that it may stay.
accept_command() {
    say "  this link brings a command. For each message that is meant for the agent, this machine runs:"
    say "$command" | sed 's/^/      /'
    if [ -n "$accepted" ]; then
        return
    elif ask "Do you know what it does, and want it? [y/N]"; then
        case $answer in y | Y | yes) return ;; esac
        fail "nothing was set up"
    fi
    fail "nothing was set up: nobody is there to be asked whether this machine shall run that" \
        "command. If you want it, put --yes behind the line: … | sh -s -- --yes"
}

# Whoever writes in the room has the backend answer on this machine.
accept_room() {
    say "  whoever mentions the agent in the room has $backend answer, on this machine;" \
        "it stays silent in rooms that you did not join"
    if [ -z "$accepted" ] && ask "Go on? [Y/n]"; then
        case $answer in '' | y | Y | yes) ;; *) fail "nothing was set up" ;; esac
    fi
}

# tell ARGUMENT…: runs the program and passes on what it tells people, indented like the rest. It
# does not say what comes next: that is said at the end, once. So are the words that call the agent.
tell() {
    if told=$("$program" "$@" 2>&1 >/dev/null); then
        say "$told" | sed "/^$to_call/d; s/^/  /"
    else
        say "$told" >&2
        return 1
    fi
}

# The best backend that is here, unless one was asked for.
choose_backend() {
    if [ -n "$backend" ]; then
        return
    elif has codex; then
        backend=codex
    elif has claude; then
        backend=claude
    elif [ -n "${OPENAI_API_KEY:-}" ]; then
        backend=openai
    else
        backend=plain
    fi
}

# An agent that could never answer does not join.
check_backend() {
    case $backend in
        codex | claude)
            has "$backend" || fail "the backend $backend needs the command $backend in PATH;" \
                "install it, or use the line without ?backend=$backend"
            ;;
        openai)
            [ -n "${OPENAI_API_KEY:-}${OPENAI_BASE_URL:-}" ] ||
                fail "the backend openai needs OPENAI_API_KEY; export it and run this again"
            ;;
        starchild)
            "$program" whoami >/dev/null 2>&1 ||
                fail "the backend starchild needs a login; run \"$program login <bundle>\" first"
            ;;
    esac
}

# pick WORD…: prints one of them.
pick() {
    number=$(od -An -N2 -tu2 /dev/urandom 2>/dev/null | tr -dc 0-9)
    shift $((${number:-$$} % $#))
    printf '%s' "$1"
}

# The first part of the agent's id. One that was chosen at random is chosen once for an invite.
choose_prefix() {
    if [ -z "$prefix" ] && [ -s "$record/prefix" ]; then
        prefix=$(cat "$record/prefix")
    fi
    if [ -z "$prefix" ]; then
        prefix=$(pick amber brave bright calm clever curious daring eager early fair gentle glad \
            happy honest keen kind lively lucky merry mild neat nimble patient proud quick quiet \
            ready silver smart steady sunny swift tidy warm wise witty)_$(pick badger beaver bison \
            crane dolphin eagle falcon ferret finch gecko heron ibex jackdaw koala lemur lizard \
            magpie marten otter panda pigeon plover puffin rabbit raven robin salmon sparrow \
            stork swallow tapir turtle walrus weasel willow wombat)
    fi
    printf '%s\n' "$prefix" >"$record/prefix"
}

is_made() { [ -e "$home/sc-chatroom/$1/handler.yaml" ]; }

# Whether an agent on this machine has joined with this invite, and was not removed since.
has_joined() { [ -s "$record/agent" ] && is_made "$(cat "$record/agent")"; }

# A handler that stays silent until its owner writes a better one.
make_handler() {
    handler=$home/handlers/$agent.sh
    if [ ! -e "$handler" ]; then
        mkdir -p "$home/handlers"
        cat >"$handler" <<'HANDLER'
#!/bin/sh
# Gets each message of the room as JSON on standard input; what it prints is posted.
message=$(cat)
printf '[SILENT]\n'
HANDLER
        chmod 700 "$handler"
    fi
}

# Makes the agent, unless this machine has it already.
add_agent() {
    agent=$("$program" id --prefix "$prefix") || fail "cannot make an id for $prefix"
    if is_made "$agent"; then
        backend=
        say "  $agent, as it was set up before"
        return
    fi
    set -- agents add --prefix "$prefix" --backend "$backend" --server "$server"
    case $backend in
        custom | acp)
            accept_command
            set -- "$@" --command "$command"
            ;;
        codex | claude | openai | starchild)
            accept_room
            ;;
        handler)
            make_handler
            set -- "$@" --handler-path "$handler"
            ;;
    esac
    agent=$("$program" "$@") || fail "the agent could not be made; see above"
    say "  $agent, with the backend $backend"
}

say_what_is_next() {
    say ""
    say "Done. Next:"
    case :$PATH: in
        *:"$home/bin":*) ;;
        *) say "  export PATH=\"$home/bin:\$PATH\"      # put this into your shell's profile" ;;
    esac
    if [ -z "$code" ]; then
        say "  starchild --help"
        return
    fi
    say "  starchild status --agent $agent"
    say "  starchild logs -f --agent $agent"
    say "  starchild stop --agent $agent"
    case $backend in
        handler) say "  edit $home/handlers/$agent.sh      # it is silent for now" ;;
        plain) say "  starchild agents edit --help      # give it a model: for now it has none" ;;
    esac
    if [ -s "$record/words" ]; then
        say ""
        say "To call it, write in the room:"
        say "  $(cat "$record/words")"
    fi
}

main() {
    accepted=
    for argument; do
        case $argument in
            --yes) accepted=yes ;;
            *) fail "$argument is no option; there is --yes, which answers every question with yes" ;;
        esac
    done
    @SETTINGS@
    [ -n "${STARCHILD_HOME:-}${HOME:-}" ] || fail "set HOME, or STARCHILD_HOME to a folder of yours"
    home=${STARCHILD_HOME:-$HOME/.starchild}
    case $home in
        /*) ;;
        *) home=$PWD/$home ;;
    esac
    program=$home/bin/starchild
    to_call='To call it, write in the room: '
    record=$home/installs/$code
    usual=$(umask)
    umask 077
    has curl || fail "curl is needed; install it and run this again"
    if [ -n "$refused" ] && ! has_joined; then
        fail "$refused"
    fi

    say "The program"
    install_program
    if [ -z "$code" ]; then
        say_what_is_next
        return
    fi

    say "The agent"
    mkdir -p "$record" || fail "cannot write to $home"
    if has_joined; then
        agent=$(cat "$record/agent")
        backend=
        say "  $agent has joined with this invite already"
    else
        choose_backend
        check_backend
        choose_prefix
        add_agent
        say "The room"
        tell room join "$code" --agent "$agent" --server "$server" ||
            fail "the agent could not join; see above"
        say "$told" | sed -n "s/^$to_call//p" >"$record/words"
        printf '%s\n' "$agent" >"$record/agent"
    fi
    # An agent that runs already is left alone.
    umask "$usual"
    tell run --agent "$agent" ||
        fail "the agent does not start; \"$program logs --agent $agent\" says why"
    say_what_is_next
}

main "$@" </dev/null
