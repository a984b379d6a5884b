package bundle

import (
	"archive/tar"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

// WriteTar writes the bundle to w as a tar.gz with a single directory, florete-<host>. Call it only
// for a bundle that was read with BinTar.
func (b Bundle) WriteTar(w io.Writer) error { return b.WriteTarWithout(w, nil) }

// WriteTarWithout writes the same without the named programs, for a host that has them. The version
// is that of the whole bundle.
func (b Bundle) WriteTarWithout(w io.Writer, programs []string) error {
	files := slices.DeleteFunc(b.files(), func(f file) bool {
		name, found := strings.CutPrefix(f.path, "bin/")
		return found && slices.Contains(programs, name)
	})
	files = append(files, file{path: "version", data: []byte(b.Version() + "\n"), mode: 0o644})
	for i := range files {
		files[i].path = path.Join(b.Units.Instance.Unit(b.envelope().Host), files[i].path)
	}
	return writeTar(w, sorted(files), "", b.time())
}

// writeTar writes files and their directories as a tar archive. The files must be sorted by path.
func writeTar(w io.Writer, files []file, prefix string, at time.Time) error {
	zip := gzip.NewWriter(w) // the standard library's takes six times as long and saves 4 %
	out := tar.NewWriter(zip)
	put := func(h tar.Header, data []byte) error {
		h.Format, h.ModTime, h.Uname, h.Gname = tar.FormatUSTAR, at, "root", "root"
		if err := out.WriteHeader(&h); err != nil {
			return err
		}
		_, err := out.Write(data)
		return err
	}
	made := map[string]bool{".": true}
	var mkdir func(dir string) error
	mkdir = func(dir string) error {
		if made[dir] {
			return nil
		}
		if err := mkdir(path.Dir(dir)); err != nil {
			return err
		}
		made[dir] = true
		return put(tar.Header{Typeflag: tar.TypeDir, Name: prefix + dir + "/", Mode: 0o755}, nil)
	}
	for _, f := range files {
		if err := mkdir(path.Dir(f.path)); err != nil {
			return err
		}
		h := tar.Header{Typeflag: tar.TypeReg, Name: prefix + f.path, Mode: int64(f.mode), Size: int64(len(f.data))}
		if f.target != "" {
			h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, f.target, 0o777
		}
		if err := put(h, f.data); err != nil {
			return err
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	return zip.Close()
}
