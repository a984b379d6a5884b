package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/nss"
)

// permissions checks the owner and mode of each delivered file and of the directories that contain
// it.
func (h *host) permissions(context.Context) (string, []Finding) {
	var found []Finding
	dirs := []string{string(h.Layout), h.Layout.Documents(), h.Layout.Need("")}
	files := 0
	if err := nss.PrivateKey(h.HostKey); err != nil {
		found = append(found, fix(err.Error(), "chmod 600 "+h.HostKey))
	}
	key := h.Layout.DeviceKey()
	if fi, err := os.Stat(key); err == nil && fi.Mode()&0o077 != 0 {
		found = append(found, fix(fmt.Sprintf("%s has mode %04o: others than root can read it", key, fi.Mode().Perm()), "chmod 600 "+key))
	}
	for _, n := range h.manifest.Needs {
		current := hostdir.Current(h.Layout.Need(n.ID))
		if gen, err := filepath.EvalSymlinks(current); err == nil {
			dirs = append(dirs, h.Layout.Need(n.ID), gen)
		}
		for _, name := range slices.Sorted(maps.Keys(n.Deliver.Files)) {
			path := filepath.Join(current, name)
			fi, err := os.Stat(path)
			if err != nil {
				continue
			}
			files++
			if want, err := n.Deliver.Files[name].Perm(); err == nil && uint32(fi.Mode().Perm()) != want {
				found = append(found, fix(fmt.Sprintf("%s has mode %04o, want %04o", path, fi.Mode().Perm(), want), fmt.Sprintf("chmod %04o %s", want, path)))
			}
			if owner := h.owner(n); owner != "" && !owns(owner, fi) {
				found = append(found, fix(fmt.Sprintf("%s is not of %s", path, owner), fmt.Sprintf("chown %s %s", owner, path)))
			}
		}
	}
	for _, dir := range dirs {
		fi, err := os.Stat(dir)
		if err != nil {
			continue
		}
		if fi.Mode()&0o022 != 0 {
			found = append(found, fix(fmt.Sprintf("%s has mode %04o: others can replace what is in it", dir, fi.Mode().Perm()), "chmod go-w "+dir))
		}
		if h.installed() && !owns("root", fi) {
			found = append(found, fix(fmt.Sprintf("%s is not of root: its owner can replace what is in it", dir), "chown root "+dir))
		}
	}
	return fmt.Sprintf("%d files, %d directories", files, len(dirs)), found
}

// owner returns the account that must own the files of a need. If the need declares no owner and
// the units of this instance use the state directory, it is the forwarder's account.
func (h *host) owner(n document.Need) string {
	if n.Deliver.Owner == "" && h.installed() {
		return h.Instance.String()
	}
	return n.Deliver.Owner
}

// installed reports whether the examined state directory is the one that the units of this instance
// use.
func (h *host) installed() bool { return h.Layout == h.Instance.State() }

// owns reports whether an account owns a file. It returns true if the account does not exist,
// because the check of the accounts reports that.
func owns(account string, fi fs.FileInfo) bool {
	u, err := nss.Lookup(account)
	st, ok := fi.Sys().(*syscall.Stat_t)
	return err != nil || !ok || u.Uid == fmt.Sprint(st.Uid)
}
