package nodelog

import (
	"context"
	"testing"
	"time"
)

func TestTheKernelsWordOfAFileIsReliedOnOnceItCameTrue(t *testing.T) {
	path := t.TempDir() + "/node-1.log"
	write(t, path, []byte("a\n"))
	file, err := openTail(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.close()
	ctx, stop := context.WithCancel(t.Context())
	g := watchGrowth(ctx, file)
	defer g.close()
	if g.news == nil {
		t.Skip("the kernel tells nothing of files here")
	}
	look := func() (n int) {
		n, _ = file.read(make([]byte, 100))
		g.read(n)
		return n
	}
	if look(); g.proven {
		t.Error("relied on before there was any word")
	}
	g.wait(ctx, time.Hour) // pollEvery, or this test never ends
	if n := look(); n > 0 || g.told {
		t.Errorf("read %d bytes, told: %v, but nothing came", n, g.told)
	}
	add(t, path, []byte("b\n"))
	g.wait(ctx, time.Hour)
	if n := look(); n != 2 || !g.proven {
		t.Errorf("read %d bytes, relied on: %v, after the kernel told of 2 bytes", n, g.proven)
	}
	// From here on nothing else ends a wait.
	add(t, path, []byte("c\n"))
	g.wait(ctx, time.Hour)
	if n := look(); n != 2 || !g.proven {
		t.Errorf("read %d bytes, relied on: %v, after the kernel told of 2 more", n, g.proven)
	}
	rename(t, path, path+".1")
	if g.wait(ctx, time.Hour); g.proven {
		t.Error("relied on although the file has lost its name")
	}
	look()
	add(t, path+".1", []byte("d\n"))
	for g.wait(ctx, time.Hour); look() == 0; g.wait(ctx, time.Hour) {
	}
	stop()
	g.proven = true
	g.wait(ctx, time.Hour)

	// More without a word of it ends the trust.
	g.told, g.found, g.proven = false, false, true
	if g.read(1); g.proven {
		t.Error("relied on although more came without a word")
	}
}
