# Read by the prelude where the command may set traps. It owns the function `trap`, which keeps the report of the directory
# beside the command's own EXIT trap, and otherwise does what the builtin does. It keeps to the prelude's rules.

__handrail_debug='' __handrail_children=''

# Sets the EXIT trap: the user's (__handrail_exit; unset where there is none) with a report before it, since it may call
# `exit`, and one after it, since it may change the directory.
__handrail_weave() {
  # The user's text must find `$?` as it was, and that must be no failure to `set -e` or an ERR trap: nothing is, left
  # of &&. The redirection hides what `set -x` shows of the group.
  builtin local __handrail_group='{ \__handrail_report "$_" && \: "$_"; } 2>'
  if [[ $__handrail_debug ]]; then
    # A DEBUG trap would be run for those commands. A subshell has none, and defining a function is no command to it.
    __handrail_group='{ ( \__handrail_report ) && __handrail_nothing() { :; }; } 2>'
  fi
  # The redirection's file, /dev/null, is written with a detour: a substring from offset 0, the value of assignments.
  # They note which process this is. Before the text they also put LINENO back, which at that moment has counted this
  # line, so that the user's text begins on line 1.
  builtin local __handrail_before="$__handrail_group"'"/dev/${__handrail_null:__handrail_pid=BASHPID,LINENO=0}"'
  builtin local __handrail_after="$__handrail_group"'"/dev/${__handrail_null:__handrail_pid=BASHPID,0}"'
  __handrail_woven=$__handrail_before
  if [[ ${__handrail_exit-} ]]; then
    __handrail_woven+=$'\n'$__handrail_exit
    if [[ $__handrail_exit == *PIPESTATUS* ]]; then # any command before the text would change it
      __handrail_woven=$__handrail_exit
    fi
    if __handrail_is_closed "$__handrail_exit"; then
      __handrail_woven+=$'\n'$__handrail_after
    fi
  fi
  builtin trap -- "$__handrail_woven" EXIT
}

# Whether a line added to this text would stand for itself, and not in a here-document, a quote or an unfinished `if`.
# It is parsed in a subshell under `set -n`, which runs nothing; where a CHLD trap would see that subshell, the answer
# is no, as it is for whatever else is doubtful: the report before the text is there in any case.
__handrail_is_closed() {
  [[ $1 != *\\ && $1 != *'<<'* && ! $__handrail_children ]] &&
    ( builtin eval '\builtin set -n'$'\n'"$1" ) >/dev/null 2>&1
}

# What DEBUG, ERR and RETURN are in a listing ("" where `trap` reset it), and where they were set: see __handrail_at.
builtin declare -A __handrail_lines __handrail_places

# What the command calls as `trap`. In the main shell it keeps the report around the text for EXIT, the one trap that
# the report needs. All else is left to the builtin, with repairs for what sets a function apart from a builtin:
# - When a function starts, bash puts the traps on DEBUG, ERR and RETURN aside, and at its end brings back those that
#   are not set by then. So they cannot be reset in here, but they can be ignored, which comes to the same; and they
#   cannot be listed in here, so what they are is noted.
# - RETURN would be run at the end of this very function; it is set to a text that then sets it to the user's.
# - DEBUG would be run for what comes after it in here, so it comes last.
# - An error would name this file: see __handrail_pass.
trap() {
  { builtin local -; builtin set +aekuvx; } 2>/dev/null
  builtin local __handrail_where="${BASH_SOURCE[1]:-$0}: line ${BASH_LINENO[0]}: " __handrail_caller='' \
    __handrail_status=0 __handrail_text=- __handrail_spec __handrail_set='' __handrail_plain
  __handrail_plain=()
  for __handrail_spec in "${FUNCNAME[@]:1}"; do
    __handrail_caller+=" $__handrail_spec"
  done

  case $#:${1-} in
    0: | 1:-- | *:-[lpP]*) __handrail_list "$@"; builtin return ;;
    *:--) builtin shift ;;
    1:- | *:-?*) __handrail_pass "$@"; builtin return ;; # wrong use, and bash says so
  esac
  if (($# == 1)); then # one word is a signal to be reset
    case ${1^^} in EXIT | 0 | DEBUG | ERR | RETURN) ;; *) __handrail_pass "$@"; builtin return ;; esac
  elif [[ ! $1 || $1 == *[!0-9]* || $1 -gt 64 ]]; then # a signal's number in place of the text: all are to be reset
    __handrail_text=$1
    builtin shift
  fi

  for __handrail_spec; do
    case ${__handrail_spec^^} in
      DEBUG | ERR | RETURN) __handrail_note "${__handrail_spec^^}" ;;
      EXIT | 0) __handrail_note_exit ;;
      CHLD | SIGCHLD) __handrail_children=1; __handrail_plain+=("$__handrail_spec") ;;
      *) __handrail_plain+=("$__handrail_spec") ;;
    esac
  done
  if ((${#__handrail_plain[@]})); then
    __handrail_pass -- "$__handrail_text" "${__handrail_plain[@]}" || __handrail_status=$?
  fi
  if [[ $__handrail_set == *RETURN* ]]; then
    __handrail_return=$__handrail_text
    builtin trap "\\builtin trap -- \"\$__handrail_return\"$__handrail_set" RETURN # DEBUG too, if both are set
    builtin return "$__handrail_status"
  elif [[ $__handrail_set && $__handrail_status == 0 ]]; then
    builtin trap -- "$__handrail_text" DEBUG
  else
    builtin return "$__handrail_status"
  fi
}

__handrail_note_exit() {
  if [[ $BASHPID != "$$" ]]; then # the end of a subshell is not the end of the command
    __handrail_plain+=(EXIT)
    builtin return 0
  fi
  if [[ $__handrail_text == - ]]; then
    builtin unset -v __handrail_exit
  else
    __handrail_exit=$__handrail_text
  fi
  __handrail_weave
}

# Does with $1 (DEBUG, ERR or RETURN) what __handrail_text says, or leaves that to the end of `trap`, in __handrail_set.
__handrail_note() {
  builtin local __handrail_at
  if [[ $__handrail_text == - ]]; then
    if __handrail_sees "$1"; then
      __handrail_lines[$1]=
      builtin trap '' "$1"
    else
      builtin trap - "$1"
    fi
    builtin return 0
  fi
  __handrail_at "$1"
  __handrail_places[$1]=$__handrail_at
  if [[ ! $__handrail_text ]]; then # bash does not put aside what is ignored, and lists it itself
    builtin unset -v "__handrail_lines[$1]"
    builtin trap '' "$1"
    builtin return 0
  fi
  __handrail_quote "$__handrail_text"
  __handrail_lines[$1]="trap -- $__handrail_quoted $1"
  if [[ $1 == ERR ]]; then
    builtin trap -- "$__handrail_text" ERR
  else
    __handrail_set+=" $1"
  fi
  if [[ $1 == DEBUG && $BASHPID == "$$" ]]; then
    __handrail_debug=1
    __handrail_weave
  fi
}

# Where we are, for a trap on $1: the process, then the functions from the inner to the outer. A function that somebody
# calls does not see such a trap, the one that set it does, and so do those that called that. To read a file with
# `source` counts as a call for DEBUG only.
__handrail_at() {
  __handrail_at=$__handrail_caller
  if [[ $1 != DEBUG ]]; then
    __handrail_at=${__handrail_at// source/}
  fi
  __handrail_at=$BASHPID:$__handrail_at
}

__handrail_sees() {
  builtin local __handrail_at
  __handrail_at "$1"
  [[ ${__handrail_places[$1]-} == "$BASHPID:"*"${__handrail_at#*:}" ]]
}

# $1 in __handrail_quoted, as bash quotes it in a listing.
__handrail_quote() {
  builtin local __handrail_quote="'" __handrail_escaped="'\\''"
  __handrail_quoted=\'${1//"$__handrail_quote"/"$__handrail_escaped"}\'
  if [[ $1 == \' ]]; then
    __handrail_quoted=\\\'
  fi
}

# `trap`, `trap -p ...`, `trap -l`: for the time of the listing everything is as the command left it.
__handrail_list() {
  if [[ $BASHPID == "$$" ]]; then
    if [[ -v __handrail_exit ]]; then
      builtin trap -- "$__handrail_exit" EXIT
    else
      builtin trap - EXIT
    fi
    for __handrail_spec in "${!__handrail_lines[@]}"; do
      if [[ ! ${__handrail_lines[$__handrail_spec]} ]]; then
        builtin trap - "$__handrail_spec"
      fi
    done
  fi

  case $#:${1-} in
    [01]:*) __handrail_ask "$@" || __handrail_status=$? ;;&
    0: | 1:-p | 1:--)
      for __handrail_spec in DEBUG ERR RETURN; do
        __handrail_list_noted "$__handrail_spec" || builtin :
      done ;;
    *:-p)
      for __handrail_spec in "${@:2}"; do
        __handrail_list_noted "$__handrail_spec" || __handrail_ask -p "$__handrail_spec" || __handrail_status=$?
      done ;;
    [!01]:*) __handrail_ask "$@" || __handrail_status=$? ;;
  esac

  if [[ $BASHPID == "$$" ]]; then
    for __handrail_spec in "${!__handrail_lines[@]}"; do
      if [[ ! ${__handrail_lines[$__handrail_spec]} ]]; then
        builtin trap '' "$__handrail_spec"
      fi
    done
    builtin trap -- "$__handrail_woven" EXIT
  fi
  builtin return "$__handrail_status"
}

# Lists a trap on DEBUG, ERR or RETURN that the builtin cannot see from inside a function, and fails if this is not one.
__handrail_list_noted() {
  case ${1^^}:$- in
    ERR:*E* | DEBUG:*T* | RETURN:*T*) builtin return 1 ;; # set -E and set -T: it sees them
    ERR:* | DEBUG:* | RETURN:*) ;;
    *) builtin return 1 ;;
  esac
  [[ ${__handrail_lines[${1^^}]-} ]] && __handrail_sees "${1^^}" && builtin printf '%s\n' "${__handrail_lines[${1^^}]}"
}

# The builtin's listing. A subshell, as in `old=$(trap -p EXIT)`, lists the traps of the shell above until it sets one
# itself, so ours cannot be taken away there for the time of the listing: it is exchanged in the text of the listing.
__handrail_ask() {
  if [[ $BASHPID == "$$" ]]; then
    __handrail_pass "$@"
    builtin return
  fi
  builtin local __handrail_failed=0 __handrail_listing __handrail_ours __handrail_theirs=''
  __handrail_listing=$'\n'$(\__handrail_pass "$@") || __handrail_failed=$?
  if [[ -v __handrail_exit ]]; then
    __handrail_quote "$__handrail_exit"
    __handrail_theirs=$'\n'"trap -- $__handrail_quoted EXIT"
  fi
  __handrail_quote "$__handrail_woven"
  __handrail_ours=$'\n'"trap -- $__handrail_quoted EXIT"
  __handrail_listing=${__handrail_listing/"$__handrail_ours"/"$__handrail_theirs"}
  for __handrail_reset in "${!__handrail_lines[@]}"; do
    if [[ ! ${__handrail_lines[$__handrail_reset]} ]]; then
      __handrail_listing=${__handrail_listing/$'\n'"trap -- '' $__handrail_reset"/}
    fi
  done
  if [[ $__handrail_listing == $'\n'?* ]]; then
    builtin printf '%s\n' "${__handrail_listing:1}"
  fi
  builtin return "$__handrail_failed"
}

# The builtin. If it finds fault, it is asked again in a subshell, and its words are told with the command's own place.
__handrail_pass() {
  builtin local __handrail_failure=0 __handrail_words
  builtin trap "$@" 2>/dev/null || __handrail_failure=$?
  if ((__handrail_failure)); then
    __handrail_words=$(\builtin trap "$@" 2>&1 >/dev/null) __handrail_here="${BASH_SOURCE[0]}: line $LINENO: "
    builtin printf '%s\n' "${__handrail_words//"$__handrail_here"/"$__handrail_where"}" >&2
  fi
  builtin return "$__handrail_failure"
}

__handrail_weave
