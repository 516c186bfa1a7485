//go:build !linux

package main

import (
	"errors"
	"os"
)

const noFollow = 0

func tryLock(*os.File) (bool, error) {
	return false, errors.New("a cluster needs Linux")
}
