package process

import "syscall"

// diesWithUs lets the kernel kill the program when the thread that started it
// ends. (prctl(2), PR_SET_PDEATHSIG; a parent that died before is noticed by
// package syscall.)
func diesWithUs(a *syscall.SysProcAttr) *syscall.SysProcAttr {
	a.Pdeathsig = syscall.SIGKILL
	return a
}
