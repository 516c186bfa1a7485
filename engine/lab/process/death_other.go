//go:build !linux

package process

import "syscall"

// diesWithUs is for Linux only: elsewhere a program outlives a killed parent.
func diesWithUs(a *syscall.SysProcAttr) *syscall.SysProcAttr { return a }
