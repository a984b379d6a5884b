package doctor

import (
	"context"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/hostreport"
)

// These constants are the minimum free space and the minimum number of free inodes. A host needs
// them to write documents and secrets.
const (
	freeBytes = hostreport.DiskFull
	freeFiles = 100
)

// disk checks the free space of the file systems that hold the state of this host and of its
// providers.
func (h *host) disk(context.Context) (string, []Finding) {
	var found []Finding
	dirs := []string{string(h.Layout)}
	for _, kind := range h.Layout.Provides().Kinds {
		dirs = append(dirs, filepath.Join(string(h.Layout)+"-provider", kind))
	}
	seen := ""
	for _, dir := range dirs {
		at := dir
		for !exists(at) && at != filepath.Dir(at) { // the directory does not exist before the first start
			at = filepath.Dir(at)
		}
		var s unix.Statfs_t
		if err := unix.Statfs(at, &s); err != nil {
			continue
		}
		free := s.Bavail * uint64(s.Bsize)
		seen += fmt.Sprintf("%d MiB free for %s ", free>>20, dir)
		switch {
		case s.Flags&unix.ST_RDONLY != 0:
			found = append(found, fix(fmt.Sprintf("the file system of %s is read-only", dir), "mount -o remount,rw "+mount(at)))
		case free < freeBytes:
			found = append(found, do(fmt.Sprintf("the file system of %s is full: %d KiB free, want %d", dir, free>>10, freeBytes>>10), "remove what is not needed below "+mount(at)))
		case s.Files > 0 && s.Ffree < freeFiles:
			found = append(found, do(fmt.Sprintf("the file system of %s can hold %d files more, want %d", dir, s.Ffree, freeFiles), "remove files that are not needed below "+mount(at)))
		}
	}
	return seen, found
}

// mount returns the mount point of the file system that contains a path.
func mount(path string) string {
	var here, above unix.Stat_t
	for path != "/" {
		parent := filepath.Dir(path)
		if unix.Stat(path, &here) != nil || unix.Stat(parent, &above) != nil || here.Dev != above.Dev {
			break
		}
		path = parent
	}
	return path
}
