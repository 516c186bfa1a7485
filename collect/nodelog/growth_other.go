//go:build !linux

package nodelog

import "os"

// openNews returns nil: the file is looked at again and again.
func openNews(*os.File) *os.File { return nil }

func hear(*os.File) (more, moved bool) { return false, false }
