package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"florete"
	"florete/agent/identity"
)

func (h *host) documents(context.Context) (string, []Finding) {
	if h.unread == nil {
		return fmt.Sprintf("manifest of %s, serial %d", h.manifest.Host, h.serial), nil
	}
	if errors.Is(h.unread, fs.ErrNotExist) {
		return "none accepted", []Finding{{
			fmt.Sprintf("no manifest accepted yet in %s", h.Layout.Documents()), h.restart("activate"),
		}}
	}
	return "unreadable", []Finding{h.unreadable(h.unread, h.restart("activate"))}
}

// unreadable is the finding of an error while reading, which may only be that
// another account is needed.
func (h *host) unreadable(err error, fix string) Finding {
	if errors.Is(err, fs.ErrPermission) {
		fix = "sudo " + h.Membership.Program("flor") + " doctor"
	}
	return Finding{err.Error(), fix}
}

// needs are those that activation has not fulfilled, or not renewed in time. One
// that only waits for another is no finding of its own.
func (h *host) needs(context.Context) (string, []Finding) {
	var found []Finding
	fulfilled := 0
	for _, n := range h.manifest.Needs {
		s := h.state(n.ID)
		switch s.State {
		case "fulfilled":
			fulfilled++
			continue
		case "blocked":
			continue
		}
		f := Finding{fmt.Sprintf("need %s is %s", n.ID, s.State), h.restart("activate")}
		if s.State == "" {
			f.Problem = fmt.Sprintf("need %s was never asked for", n.ID)
		}
		if s.Error != nil {
			f.Problem += fmt.Sprintf(": %s (%s): %s", s.Error.Kind, s.Error.Code, s.Error.Message)
		}
		if s.State == "denied" {
			f.Fix = fmt.Sprintf("deploy %s, whose policy must grant it; then %s", strings.Join(n.Providers, " or "), h.restart("activate"))
		}
		found = append(found, f)
	}
	return fmt.Sprintf("%d of %d fulfilled", fulfilled, len(h.manifest.Needs)), found
}

// identity is what the host proves itself with: its SVIDs, and the SSH host key.
func (h *host) identity(context.Context) (string, []Finding) {
	var found []Finding
	for _, err := range h.unloaded {
		found = append(found, h.unreadable(err, h.restart("activate")))
	}
	good := 0
	for _, n := range h.manifest.Needs {
		id, err := identity.CertID(n)
		if !identity.Delivers(n) || err != nil {
			continue
		}
		svid := h.identities.SVID(id)
		switch {
		case svid == nil && len(h.unloaded) == 0 && h.state(n.ID).State == "fulfilled":
			found = append(found, Finding{fmt.Sprintf("the SVID of %s is gone from %s", id.Short(), h.Layout.Need(n.ID)), h.restart("activate")})
		case svid == nil:
		case h.now.After(svid.Cert.Leaf.NotAfter):
			ago := h.now.Sub(svid.Cert.Leaf.NotAfter).Round(time.Second)
			found = append(found, Finding{fmt.Sprintf("the SVID of %s expired %s ago", id.Short(), ago), h.restart("activate")})
		case svid.Valid(h.now): // else the clock's finding
			good++
		}
	}
	if f, ok := h.hostKey(); !ok {
		found = append(found, f)
	}
	return fmt.Sprintf("%d valid SVIDs, SSH host key %s", good, h.HostKey), found
}

// hostKey must be the one that the manifest declares: enrolment proves it.
func (h *host) hostKey() (Finding, bool) {
	declared := h.manifest.Identity.SSHHostKey
	text, err := os.ReadFile(h.HostKey + ".pub")
	if errors.Is(err, fs.ErrNotExist) {
		return Finding{fmt.Sprintf("no SSH host key %s", h.HostKey), "ssh-keygen -A"}, false
	}
	if err != nil {
		return h.unreadable(err, "ssh-keygen -A"), false
	}
	words := append(strings.Fields(string(text)), "", "")
	if key := words[0] + " " + words[1]; key != declared {
		return Finding{
			fmt.Sprintf("SSH host key %s is %q, the manifest declares %q", h.HostKey, key, declared),
			fmt.Sprintf("in the flake: hosts.%s.sshHostKey = %q;", h.manifest.Host, key),
		}, false
	}
	return Finding{}, true
}

// permissions are who may read what was delivered, and who may change it.
func (h *host) permissions(context.Context) (string, []Finding) {
	var found []Finding
	dirs := []string{string(h.Layout), h.Layout.Documents(), h.Layout.Need("")}
	files := 0
	if fi, err := os.Stat(h.HostKey); err == nil && fi.Mode()&0o077 != 0 {
		found = append(found, Finding{fmt.Sprintf("%s has mode %04o: others than root can read it", h.HostKey, fi.Mode().Perm()), "chmod 600 " + h.HostKey})
	}
	for _, n := range h.manifest.Needs {
		current := florete.Current(h.Layout.Need(n.ID))
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
				found = append(found, Finding{fmt.Sprintf("%s has mode %04o, want %04o", path, fi.Mode().Perm(), want), fmt.Sprintf("chmod %04o %s", want, path)})
			}
			if owner := n.Deliver.Owner; owner != "" && !owns(owner, fi) {
				found = append(found, Finding{fmt.Sprintf("%s is not of %s", path, owner), fmt.Sprintf("chown %s %s", owner, path)})
			}
		}
	}
	for _, dir := range dirs {
		if fi, err := os.Stat(dir); err == nil && fi.Mode()&0o022 != 0 {
			found = append(found, Finding{fmt.Sprintf("%s has mode %04o: others can replace what is in it", dir, fi.Mode().Perm()), "chmod go-w " + dir})
		}
	}
	return fmt.Sprintf("%d files, %d directories", files, len(dirs)), found
}

// owns tells whether a file is an account's. An account that does not exist is
// activation's to report.
func owns(account string, fi fs.FileInfo) bool {
	u, err := user.Lookup(account)
	st, ok := fi.Sys().(*syscall.Stat_t)
	return err != nil || !ok || u.Uid == fmt.Sprint(st.Uid)
}
