"""Plain bash is the judge: a script does in a session what it does under `bash -c`, byte for byte, and its end is told.

Each script starts in a workspace with the directories `sub` and `sub/deep`; beside it stands where bash ends.
"""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from handrail.hosts.local import LocalHost
from handrail.process.cancel import Cancel
from handrail.shell.session import Session
from handrail.values.completed import Completed
from handrail.values.invocation import Invocation

EXIT_TRAPS = [
    ("trap 'echo bye' EXIT; cd sub; echo hi", "sub"),
    ("trap 'echo bye' exit; cd sub", "sub"),
    ("trap 'echo bye' 0; cd sub; trap", "sub"),
    ("trap -- 'echo bye' EXIT; cd sub; trap -p", "sub"),
    ("trap 'echo a\necho b' EXIT; trap -p; (trap -p); cd sub", "sub"),
    ("trap 'exit 7' EXIT; cd sub", "sub"),
    ("trap 'exit' EXIT; exit 3", "."),
    ("trap 'exit $?' EXIT; cd sub; exit 3", "sub"),
    ("trap 'exit 0' EXIT; false", "."),
    ("trap 'false' EXIT; exit 2", "."),
    ("trap '' EXIT; cd sub; trap -p", "sub"),
    ("trap 'echo x' EXIT; trap - EXIT; cd sub; trap -p", "sub"),
    ("trap EXIT; trap 'x' EXIT; trap EXIT; trap -p; trap 0; cd sub", "sub"),
    ("trap 'echo one' EXIT; trap 'echo two' EXIT; cd sub", "sub"),
    ("trap 'echo one' EXIT; trap 'trap \"echo two\" EXIT' EXIT; cd sub", "sub"),
    ("trap 'echo x' EXIT INT TERM; trap -p; trap -p EXIT; trap -p TERM INT; cd sub", "sub"),
    ('for s in INT TERM HUP EXIT; do trap "echo $s" $s; done; trap -p; trap - INT TERM HUP', "."),
    ("trap 'echo a' INT EXIT FOO; echo $?; cd sub", "sub"),
    ("trap \"echo 'it'\\\\''s'\" EXIT; trap -p; trap \"'\" INT; trap -p; (trap -p)", "."),
    ("trap 'echo \"trap $?\"' EXIT; cd sub; (exit 3)", "sub"),
    ("trap 'echo $1 $#' EXIT; set -- a b c; cd sub", "sub"),
    ("trap 'echo \"$@\"' EXIT; f() { cd sub; exit 2; }; f x y", "sub"),
    ("trap 'echo $FUNCNAME $BASH_LINENO' EXIT; f() { exit 3; }; f", "."),
    ("trap 'echo $_' EXIT; cd sub; echo a; exit 3", "sub"),
    ("trap 'echo \"${PIPESTATUS[@]}\" $?' EXIT; cd sub; false | true; exit 3", "sub"),
    ("trap 'echo $LINENO; nosuch\necho $LINENO; nosuch2' EXIT\n\ncd sub", "sub"),
    ("LINENO=50; trap 'echo $LINENO' EXIT; cd sub", "sub"),
    ("f() { trap 'echo fexit' EXIT; cd sub; return 3; }; f", "sub"),
    ("f() { trap - EXIT; exit 1; }; trap f EXIT; cd sub", "sub"),
    ('cleanup() { local s=$?; echo "cleanup $s"; exit $s; }; trap cleanup EXIT INT TERM; cd sub; exit 5', "sub"),
    ("trap 'echo c' EXIT; trap 'exit 130' INT; cd sub; kill -INT $$; sleep 1", "sub"),
    ("trap 'echo bye' EXIT; cd sub; kill -TERM $$", "sub"),
    ('d=sub/tmp; mkdir $d; trap \'cd ../..; rmdir "$d"\' EXIT; cd "$d"', "."),
    ("trap 'cd ..' EXIT; cd sub/deep", "sub"),
    ("trap 'cd ..' EXIT; cd sub; trap - EXIT", "sub"),
    ("trap 'trap \"\" EXIT; cd ..' EXIT; cd sub", "."),
    ("trap 'exec echo hi' EXIT; cd sub", "sub"),
    ("trap 'kill -9 $$' EXIT; cd sub", "sub"),
    ("trap 'return 3' EXIT; cd sub", "sub"),
    ("trap 'cat <&3' EXIT; exec 3<<<x; cd sub", "sub"),
    ("trap 'wait; echo w' EXIT; sleep 0.01 & cd sub", "sub"),
    ("echo 'trap \"echo s\" EXIT; cd sub; return 3' > s.sh; . ./s.sh; echo $?; trap -p", "sub"),
    ("trap 'echo no' EXIT; cd sub; exec sh -c 'echo replaced; exit 5'", "."),
]

TRAP_TEXTS = [
    ("trap 'echo hi # c' EXIT; cd sub", "sub"),
    ("trap $'echo a\\n# comment' EXIT; cd sub", "sub"),
    ("trap 'echo hi \\' EXIT; cd sub", "sub"),
    ("trap 'echo hi \\\\' EXIT; cd sub", "sub"),
    ("trap 'echo a;' EXIT; cd sub", "sub"),
    ("trap 'echo \"abc' EXIT; cd sub", "sub"),
    ("trap 'echo ${x' EXIT; cd sub", "sub"),
    ("trap 'a=(1 2' EXIT; cd sub", "sub"),
    ("trap 'case x in' EXIT; cd sub", "sub"),
    ("trap 'if true; then' EXIT; cd sub", "sub"),
    ("trap 'if true; then\necho multi\nfi' EXIT; cd sub", "sub"),
    ("trap 'echo a\n)\necho b' EXIT; cd sub", "sub"),
    ("trap ':; }' EXIT; cd sub", "sub"),
    ("trap 'cat <<E\nhi\nE' EXIT; cd sub", "sub"),
    ("trap 'cat <<E\nhi' EXIT; cd sub", "sub"),
    ("trap 'cat <<<hello' EXIT; cd sub", "sub"),
    ("trap 'echo $((1<<2))' EXIT; cd sub", "sub"),
]

OTHER_TRAPS = [
    ("trap 'echo a' ERR; trap 'echo b' ERR; false; trap -p ERR", "."),
    ("trap 'echo a' ERR; trap - ERR; false; trap -p; trap", "."),
    ("trap 'x' ERR; trap ERR; trap -p ERR; trap -- - ERR", "."),
    ("trap 'echo ERR' ERR; (false); false | true; if false; then :; fi; false || true; f() { false; }; f", "."),
    ("trap 'echo ERR' ERR; x=$(false); echo $x; eval false; command false; builtin false", "."),
    ("trap 'echo e $LINENO' ERR; f() { false; trap -p; trap - ERR; }; f; false; trap -p", "."),
    ("f() { trap 'echo e' ERR; }; f; false; trap -p", "."),
    ("trap 'exit 4' ERR; trap 'echo x $?' EXIT; cd sub; false; echo no", "sub"),
    ("trap 'echo \"$BASH_COMMAND\"' ERR; cd sub; false x", "sub"),
    ("set -E; trap 'echo e $FUNCNAME' ERR; f() { false; :; }; f; trap -p; trap - ERR; false; trap -p", "."),
    ("trap 'echo a $BASH_COMMAND' DEBUG; trap 'echo b' DEBUG; :; trap - DEBUG; :; trap -p", "."),
    ("trap 'echo D$LINENO' DEBUG\ncd sub\nf() { :; }\nf\ntrap DEBUG\n:", "sub"),
    ("trap 'echo D' DEBUG; trap 'echo bye' EXIT; cd sub", "sub"),
    ("trap 'echo bye' EXIT; trap 'echo D' DEBUG; cd sub; exit 3", "sub"),
    ("trap 'echo D' DEBUG; cd sub", "sub"),
    ("trap 'echo D' DEBUG; trap -p; (trap -p)", "."),
    ("trap 'echo x' EXIT ERR DEBUG; false; trap -p ERR EXIT DEBUG", "."),
    ("trap 'last=$now; now=$BASH_COMMAND' DEBUG; trap 'echo \"$last $?\"' EXIT; set -e; cd sub; false", "sub"),
    ("trap 'echo R' RETURN; f() { :; }; f; trap -p; trap - RETURN; f; trap -p", "."),
    ("f() { trap 'echo r' RETURN; echo in; }; f; g() { :; }; g; trap -p", "."),
    ("trap 'echo $BASH_COMMAND' DEBUG RETURN; f() { :; }; f", "."),
    ("echo 'trap - ERR; trap \"echo D\" DEBUG' > s.sh; trap 'echo E' ERR; . ./s.sh; false", "."),
    ("trap 'echo 1' INT; trap '' INT; trap -p; trap - INT; trap -p", "."),
    ("trap 'echo u' USR1; kill -USR1 $$; cd sub", "sub"),
    ("trap 'echo C' CHLD; /bin/true; cd sub; trap 'echo bye' EXIT; trap -p; /bin/true", "sub"),
    ("trap 999 INT; trap -p; trap 2 15; trap 'q' 2; trap 2; trap -p", "."),
    ("trap - ; trap ''; trap FOO; trap -x INT", "."),
    ("trap x FOO; echo $?; trap x FOO INT BAR; echo $?; trap -p", "."),
    ("\n\ntrap x FOO; f() {\ntrap y BAR; }; f", "."),
    ("trap -p FOO; echo $?; trap -p INT; echo $?; trap -- ; trap -p --", "."),
    ("trap -l; trap -lp", "."),
]

SUBSHELLS = [
    ("(trap 'echo s' EXIT; cd /; trap -p; exit 2); echo $?; cd sub", "sub"),
    ("(trap -p); (trap); trap 'echo y' EXIT; (trap -p; trap 'echo z' INT; trap -p)", "."),
    ("(trap - EXIT; trap -p); trap 'echo m' EXIT; (trap - EXIT; trap -p; exit 3); echo $?", "."),
    (
        'o=$(trap -p EXIT); echo "[$o]"; trap \'echo q\' EXIT; o=$(trap -p EXIT); trap - EXIT; eval "$o"; cd sub',
        "sub",
    ),
    ("x=$(trap 'echo sub' EXIT; echo body); echo \"$x\"; cd sub", "sub"),
    ("{ trap 'echo s' EXIT; cd sub; } | cat; echo x", "."),
    ("trap 'echo m' EXIT; { trap 'echo s' EXIT; echo b; } & wait; cd sub", "sub"),
    ("cd sub; bash -c 'cd /; env' | grep -v '^_='", "sub"),
    ("trap 'echo E' ERR; (trap 'echo F' ERR; false; trap - ERR; false; trap -p); trap -p", "."),
]

OPTIONS = [
    ("set -x; cd sub; echo hi", "sub"),
    ("set -x; cd sub; trap 'echo bye' EXIT; echo hi", "sub"),
    ("set -x; trap 'echo e' ERR; trap 'echo r' RETURN; trap -p; false; f() { :; }; f", "."),
    ("set -x; trap 'echo one' EXIT INT; trap - INT; trap '' TERM; trap -p EXIT", "."),
    ("set -x; PS4='$(echo z) '; trap 'echo bye' EXIT; trap -p", "."),
    ("PS4='+$LINENO:${FUNCNAME[0]-}: '; set -x; trap 'echo one' EXIT\ncd sub\n:", "sub"),
    ("exec 7>tr; BASH_XTRACEFD=7; set -x; cd sub; :; set +x; cat ../tr", "sub"),
    ("set -e; cd sub; false; echo no", "sub"),
    ("set -e; trap 'echo $?' EXIT; cd sub; false; echo no", "sub"),
    ("set -e; trap 'false; echo never' EXIT; cd sub; exit 0", "sub"),
    ("set -e; trap 'cd /nope; echo never' EXIT; cd sub", "sub"),
    ("set -e; trap 'set +e; false; echo x' EXIT; cd sub; false", "sub"),
    ("set -eE; trap 'echo err' ERR; trap 'echo $?; false; echo never' EXIT; cd sub; false", "sub"),
    ("set -e; trap 'echo x' FOO; echo no", "."),
    ("set -euo pipefail; trap 'echo \"err at $LINENO: $BASH_COMMAND\" >&2' ERR; cd sub; ls /nope | cat", "sub"),
    ("set -u; cd sub; trap 'echo $?' EXIT; echo $nope", "sub"),
    ("set -o pipefail; trap 'echo $?' EXIT; cd sub; false | true", "sub"),
    ("set -a; trap 'echo bye' EXIT; x=1; env | grep -c handrail; cd sub", "sub"),
    ("set -k; trap 'echo a' EXIT; cd sub", "sub"),
    ("set -f; trap 'echo *' EXIT; cd sub", "sub"),
    ("set -n; cd sub", "."),
    ("set -o noclobber; cd sub; trap 'echo x' EXIT", "sub"),
    ("set -o posix; cd sub", "sub"),
    ("POSIXLY_CORRECT=1; cd sub", "sub"),
    ("set -T; f() { cd sub; }; f", "sub"),
    ("shopt -s extdebug; cd sub; trap 'echo bye' EXIT", "sub"),
    (
        "shopt -s nullglob failglob nocasematch extglob; trap 'echo a' EXIT; trap 'echo x' err; false; trap -p; cd sub",
        "sub",
    ),
    ("IFS=/; cd sub; trap 'echo bye' EXIT; trap -p; trap 'echo E' ERR; trap -p ERR EXIT", "sub"),
    ("unset IFS; trap 'echo x' EXIT INT; trap -p; cd sub", "sub"),
    ("readonly status=1 IFS PATH; trap 'echo a' EXIT; cd sub", "sub"),
    ("ulimit -f 0; trap 'echo x' EXIT; cd sub", "sub"),
    ("PATH=; cd sub; trap 'echo x' EXIT", "sub"),
    ('for i in 1 2 3 4 5 6 7 8 9; do eval "exec $i>&-"; done; cd sub', "sub"),
    ("exec > log 2>&1; cd sub; echo x", "sub"),
    (
        "printf() { echo P; }; pwd() { echo W; }; local() { echo L; }; set() { echo S; }; return() { echo R; }; cd sub",
        "sub",
    ),
    (
        "shopt -s expand_aliases; alias pwd='echo PWD' printf='echo PF' builtin='echo B'\ncd sub\ntrap 'echo x' EXIT",
        "sub",
    ),
    ('cd() { builtin cd "$@" && echo moved; }; cd sub', "sub"),
    ("shopt -s expand_aliases; alias builtin='echo B' __handrail_pass='echo P'\ntrap x FOO; (trap -p); cd sub", "sub"),
]

PLAIN = [
    ("cd sub; false", "sub"),
    ("cd sub; exit 300", "sub"),
    ("cd sub; exit abc", "sub"),
    ("return 3; echo x", "."),
    ("(cd sub); cd sub | cat; cd /nope; cd sub; cd -", "."),
    ("pushd sub; pushd deep; popd", "sub"),
    ("mkdir -p $'a\\nb\\n'; cd $'a\\nb\\n'", "a\nb\n"),
    ("cd sub; mv ../sub ../moved", "moved"),
    ("kill -TERM $$", "."),
    ("kill -9 $$", "."),
    ("trap 'echo got' TERM; kill -TERM $$; cd sub", "sub"),
    ("exec sh -c 'echo replaced; exit 5'", "."),
    ("echo (", "."),
    ('echo "abc', "."),
    ("touch ran; }; touch ran2", "."),
    ("cat <<E\nhi", "."),
    ("echo hi \\", "."),
    ("# only a remark", "."),
    ("nosuch; ./nosuch; . ./nosuch; cd nosuch\n  nosuch", "."),
    ("sub", "."),
    ("./sub", "."),
    ('echo $- $0 $SHLVL $_ $LINENO $BASH_EXECUTION_STRING "$@" $# $PWD ${OLDPWD-unset}', "."),
    ("env; export -p; env | grep -c handrail; echo ${BASH_ENV-unset}", "."),
    ("shopt; set -o; type cd; hash; jobs; alias; ulimit -a; umask", "."),
    ("echo ${BASH_SOURCE[@]} ${FUNCNAME[@]} ${BASH_LINENO[@]} $BASH_SUBSHELL; caller", "."),
    ("f() {\nnosuch; echo ${BASH_SOURCE[@]} $LINENO\n}; f", "."),
    ("cd sub; false | true; echo ${PIPESTATUS[@]}; ! true; echo $?", "sub"),
    ("sleep 0.05 & wait $!; echo $?; cd sub", "sub"),
    ("readlink /proc/self/fd/0; ls /proc/self/fd | wc -l; : </dev/tty", "."),
]

SCRIPTS = [*EXIT_TRAPS, *TRAP_TEXTS, *OTHER_TRAPS, *SUBSHELLS, *OPTIONS, *PLAIN]


def what_happened(completed: Completed) -> tuple[object, ...]:
    assert not completed.timed_out
    assert completed.not_started is None
    return completed.exit_code, completed.signal, completed.stdout.head, completed.stderr.head


@pytest.mark.parametrize(("script", "cwd"), SCRIPTS, ids=[script for script, _ in SCRIPTS])
def test_a_script_does_what_it_does_in_plain_bash(
    script: str, cwd: str, session: Session, root: Path, environment: dict[str, str], host: LocalHost
) -> None:
    plain = Invocation(
        argv=("bash", "-c", "--", script),
        cwd=str(root),
        env={**environment, "PWD": str(root)},
        timeout_s=20,
        merge=False,
    )
    with closing(Cancel()) as cancel:
        expected = host.run(plain, cancel=cancel)
    shutil.rmtree(root)
    (root / "sub" / "deep").mkdir(parents=True)

    ran = session.run(script, timeout_s=20, merge=False)

    assert what_happened(ran.completed) == what_happened(expected)
    assert (ran.cwd, ran.refused, ran.vanished) == (cwd, False, False)
