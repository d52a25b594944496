# Writes what zsh offers after a command line into a file: `zsh complete.zsh FOLDER FILE LINE`, where FOLDER holds
# the completions. Only a shell at a terminal completes, so one is started at one. It ends
# before it shows its list, which may be too long to be shown without a question.
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "offered=${(q)2}; fpath=(${(q)1} \$fpath); autoload -U compinit && compinit -u -D"
zpty -w shell 'compadd() {
    if [[ ${@[1,(i)(-|--)]} == *-[OAD]\ * ]]; then builtin compadd "$@"; return; fi
    local -a hits; builtin compadd -O hits "$@"; print -rl -- $hits >> $offered; builtin compadd "$@"
}; leave() { kill -KILL $$ }; comppostfuncs=(leave); PS1=; echo "rea""dy"'
zpty -r shell seen '*ready*'
zpty -w -n shell "$3"$'\t'
while zpty -r shell seen; do :; done
