# Read by bash before the model's text, through BASH_ENV. It owns one thing: the report of the directory in which bash
# ends. It refuses to be seen: it prints nothing, exports nothing, and leaves options, traps and `$?` as it found them.
# (What can be seen all the same stands in tests/shell/test_declared.py.)
#
# What it gets, as variables of the environment that become private to this shell at once:
#   __handrail_fifo    where the report goes: physical path, newline, NUL. The last whole record counts.
#   __handrail_text    a file with the command, NUL behind it, where that is too long for one argument.
#   __handrail_traps   set where the command may set traps: then trap.sh keeps the report beside them.
#   __handrail_env     assignments of variables that would have changed how bash starts.
#   __handrail_login, __handrail_keep   for a login shell, see login.sh.
# All names begin with __handrail, so that no command uses them by accident. It stays short: every command waits for it.
#
# By the time a function here is called, the command may have set any option, and functions and aliases with any name.
# So builtins are called through `builtin`, no word depends on IFS, on globbing or on a variable being set, and nothing
# fails that is not asked. Bash looks for aliases where it parses, and it parses `$(...)`, `eval` and traps late: there
# the first word is quoted, which makes it no alias.

__handrail_last=$_ __handrail_null=null
builtin unset -v BASH_ENV
builtin export -n __handrail_fifo __handrail_text __handrail_traps __handrail_env __handrail_login __handrail_keep
if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404)); then # `local -` came with 4.4
  builtin echo "handrail needs bash 4.4 or newer; the one on PATH is $BASH_VERSION" >&2
  exit 126
fi

# Writes one record, for the main shell only: a child that a signal ends right after the fork may still run its parent's
# EXIT trap. `$?` is handed through; so is `$_`, if it is given as the argument.
# A FIFO, opened for reading and writing: such an open waits for nobody and never meets a closed pipe; neither noclobber
# nor `ulimit -f 0` applies to it; it takes no descriptor of the command's and no program, so PATH may be empty.
__handrail_report() {
  __handrail_status=$?
  builtin local -
  builtin set +x
  if [[ $__handrail_pid == "$$" && -p ${__handrail_fifo-} ]]; then
    { builtin pwd -P; builtin printf '\0'; } 1<>"$__handrail_fifo"
  fi
  builtin return "$__handrail_status"
}

# The command must find `$?` as it was, and that must be no failure to `set -e` or an ERR trap: nothing is, left of &&.
# The redirection hides what `set -x` shows of the group. Its file, /dev/null, is written with a detour: a substring from
# offset 0, the value of assignments that note which process this is and put LINENO back, which has counted this line.
builtin trap -- '{ \__handrail_report "$_" && \: "$_"; } 2>"/dev/${__handrail_null:__handrail_pid=BASHPID,LINENO=0}"' EXIT
if [[ ${__handrail_traps-} ]]; then
  builtin source "${BASH_SOURCE[0]%/*}/trap.sh"
fi

if [[ ${__handrail_text-} ]]; then
  IFS= builtin read -r -d '' __handrail_text <"$__handrail_text"
fi
if [[ ${__handrail_env-} ]]; then
  builtin eval "\\builtin export $__handrail_env"
fi
if [[ ${__handrail_login-} ]]; then
  builtin source "${BASH_SOURCE[0]%/*}/login.sh"
else
  builtin : "$__handrail_last"
fi
