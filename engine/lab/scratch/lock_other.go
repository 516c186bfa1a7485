//go:build !unix

package scratch

import (
	"errors"
	"os"
)

func lockDir(string) (*os.File, error) { return nil, errors.ErrUnsupported }
