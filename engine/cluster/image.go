package cluster

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
)

// Image is a container image of one static program.
type Image struct {
	// Name with a tag, as pods name it: "localhost/web:1". Nothing is pulled.
	Name string
	// Program is the path of the program; Args come before those of the pod.
	Program string
	Args    []string
}

// write writes the image as `docker save` does: a tar of a manifest, a configuration
// (github.com/opencontainers/image-spec config.md) and one layer.
func (i Image) write(to io.Writer) error {
	program, err := os.ReadFile(i.Program)
	if err != nil {
		return fmt.Errorf("image %s: %w", i.Name, err)
	}
	at := "/" + path.Base(i.Program)
	var layer bytes.Buffer
	if err := writeTar(&layer, file{at[1:], 0o755, program}); err != nil {
		return err
	}
	type m = map[string]any
	config, err := json.Marshal(m{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": m{"Entrypoint": append([]string{at}, i.Args...)},
		"rootfs": m{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer.Bytes()))}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]m{{"Config": "config.json", "RepoTags": []string{i.Name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	return writeTar(to, file{"manifest.json", 0o644, manifest}, file{"config.json", 0o644, config}, file{"layer.tar", 0o644, layer.Bytes()})
}

type file struct {
	name    string
	mode    int64
	content []byte
}

func writeTar(to io.Writer, files ...file) error {
	t := tar.NewWriter(to)
	for _, f := range files {
		if err := t.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		if _, err := t.Write(f.content); err != nil {
			return err
		}
	}
	return t.Close()
}
