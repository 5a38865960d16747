POSIXLY_CORRECT=1
unset -f exit return test [ echo printf set trap exec eval true false let diff cmp grep
trap - EXIT ERR DEBUG RETURN
set +o posix
unset POSIXLY_CORRECT
