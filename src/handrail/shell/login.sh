# Read by the prelude for a login shell: reads the user's profile, and undoes what a command must not start with.
#   __handrail_login   assignments that hold whatever the profile says
#   __handrail_keep    names that the session's environment has, although others like them are withheld

# After the profile: undoes what a command must not start with. What the profile exported is held to the rule for every
# command's environment (process/environment.py): no secrets, nothing that steers a host's own runtime, loader or shell,
# no functions. PATH and the homes of languages stay.
__handrail_settle() {
  builtin local - __handrail_name __handrail_names
  builtin set +aekuvx
  __handrail_names=$(\builtin compgen -e)$'\n'
  while [[ $__handrail_names ]]; do # no word splitting, since IFS may be readonly, and no file that might not be made
    __handrail_name=${__handrail_names%%$'\n'*} __handrail_names=${__handrail_names#*$'\n'}
    if [[ " $__handrail_keep " != *" $__handrail_name "* ]] && __handrail_is_withheld "$__handrail_name"; then
      builtin unset -v "$__handrail_name" || builtin export -n "$__handrail_name" # a readonly one cannot be unset
    fi
  done
  __handrail_names=$(\builtin declare -Fx)$'\n'
  while [[ $__handrail_names == *[!$'\n']* ]]; do
    __handrail_name=${__handrail_names%%$'\n'*} __handrail_names=${__handrail_names#*$'\n'}
    __handrail_name=${__handrail_name##* } # "declare -fx NAME"
    if [[ " $__handrail_keep " != *" BASH_FUNC_$__handrail_name%% "* ]]; then
      builtin export -nf "$__handrail_name"
    fi
  done
  builtin eval "\\builtin export $__handrail_login"
  builtin cd -- "$__handrail_start"
  builtin unset -v OLDPWD
  builtin unset -f __handrail_settle __handrail_is_withheld
  builtin return 0
}

# tests/shell/test_login.py holds this to `looks_secret` and `meant_for_host`.
__handrail_is_withheld() {
  builtin local __handrail_upper="${1^^}"
  case ${__handrail_upper//TOKENIZ/} in
    *TOKEN* | *SECRET* | *PASSWORD* | *PASSWD* | *PASSPHRASE* | *API_KEY* | *APIKEY* | *ACCESS_KEY* | *ACCESSKEY* | \
      *PRIVATE_KEY* | *PRIVATEKEY* | *CREDENTIAL* | *CREDS* | AWS_* | SSH_AUTH_SOCK) builtin return 0 ;;
  esac
  case $1 in
    JAVA_TOOL_OPTIONS | _JAVA_OPTIONS | JDK_JAVA_OPTIONS | PYTHONPATH | PYTHONHOME | LD_* | DYLD_* | BASH_ENV | ENV | \
      BASH_XTRACEFD | PS4 | CDPATH | GIT_ASKPASS | SSH_ASKPASS) builtin return 0 ;;
  esac
  builtin return 1
}

# bash was started with --noprofile, and the files that it would have read are read here: so no BASH_ENV is exported to
# what they start, one that they export cannot take the place of this file, and what they export can be undone. All of
# it is one command, read before the profile can change how bash reads, and what follows the profile is not traced.
{
  __handrail_start=$PWD
  for __handrail_profile in ~/.bash_profile ~/.bash_login ~/.profile /dev/null; do
    if [[ -f $__handrail_profile && -r $__handrail_profile ]]; then
      break
    fi
  done
  if [[ -r /etc/profile ]]; then
    builtin source /etc/profile || builtin :
  fi
  builtin source "$__handrail_profile" || builtin :
  { __handrail_settle; builtin : "$__handrail_last"; } 2>/dev/null
}
