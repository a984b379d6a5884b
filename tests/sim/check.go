package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/activation"
	"github.com/florete/florete/activation/needstate"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/trust"
)

// check checks the laws that must hold at the end of a story.
func (f *Fleet) check() {
	for _, h := range f.Hosts {
		h.Stop()
		h.whole()
		h.rotated()
		h.bounded()
		h.idle()
	}
	f.lawsMu.Lock()
	defer f.lawsMu.Unlock()
	for what, n := range f.told {
		if f.rows[what] < n {
			f.Errorf("law \"audit\": %s: hosts heard it %d times, the audit log has it %d times", what, n, f.rows[what])
		}
	}
}

// whole checks two laws on the files of a host. By "whole", the delivered files are exactly one
// answer. By "key", the key of an SVID or of an SSH certificate belongs to it.
func (h *Host) whole() {
	state := h.State()
	for _, n := range h.needs {
		if len(n.Deliver.Files) == 0 {
			continue
		}
		files, err := delivered(state, n)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			h.f.violated("whole", "%s: %s: %v", h.name, n.ID, err)
			continue
		}
		h.matches(n, files)
		if h.f.source(h, n, files) == nil {
			h.f.violated("whole", "%s: %s: what is delivered is no answer of any provider", h.name, n.ID)
		}
	}
}

// delivered reads the files in force for a need. The key of the map is the name of a value.
func delivered(l hostdir.Layout, n document.Need) (map[string]string, error) {
	dir := hostdir.Current(l.Need(n.ID))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, e := range entries {
		want, ok := n.Deliver.Files[e.Name()]
		if !ok {
			return nil, errors.New("delivers file " + e.Name())
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		if perm, _ := want.Perm(); info.Mode().Perm() != fs.FileMode(perm) {
			return nil, errors.New(e.Name() + " has mode " + info.Mode().String())
		}
		files[want.Value] = string(b)
	}
	if len(files) != len(n.Deliver.Files) {
		return nil, errors.New("a file is missing")
	}
	return files, nil
}

func (h *Host) matches(n document.Need, files map[string]string) {
	var err error
	switch n.Kind {
	case document.KindSSH:
		err = certifies(n, files)
	case "cert":
		id, idErr := n.CertID()
		h.f.must(idErr)
		_, err = trust.ParseSVID([]byte(files["svid"]), []byte(files["key"]), id)
	}
	if err != nil {
		h.f.violated("key", "%s: %s: %v", h.name, n.ID, err)
	}
}

// certifies returns an error unless a delivered SSH certificate is for the delivered key and the
// requested user.
func certifies(n document.Need, files map[string]string) error {
	r, err := n.SSH()
	if err != nil {
		return err
	}
	own, err := ssh.ParsePrivateKey([]byte(files["key"]))
	if err != nil {
		return err
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(files["certificate"]))
	if err != nil {
		return err
	}
	c, ok := public.(*ssh.Certificate)
	if !ok || !bytes.Equal(c.Key.Marshal(), own.PublicKey().Marshal()) || c.KeyId != r.ID.String() {
		return fmt.Errorf("%s is no certificate for this key of %s", files["certificate"], r.ID)
	}
	return nil
}

// source returns the answer from which the delivered files come, or nil if there is none. It does
// not compare the key, which the host has generated, and the roots, which are in the host's
// manifest.
func (f *Fleet) source(h *Host, n document.Need, files map[string]string) *answer {
	f.lawsMu.Lock()
	defer f.lawsMu.Unlock()
	for _, p := range f.Providers {
	answers:
		for _, a := range f.answers[p.name+" answers/"+h.id.Short()+"/"+n.ID] {
			for from, value := range files {
				want := a.Values[from]
				switch from {
				case "key":
					want = value
				case "bundle":
					want = strings.Join(f.trust().Roots, "")
				}
				if value != want {
					continue answers
				}
			}
			return &a
		}
	}
	return nil
}

// rotated checks the law "rotated": the delivered files are of the generation that the manifest
// requests.
func (h *Host) rotated() {
	for _, n := range h.needs {
		files, err := delivered(h.State(), n)
		if err != nil || strings.HasPrefix(n.ID, ungranted) {
			continue
		}
		if a := h.f.source(h, n, files); a != nil && a.generation != n.Generation {
			h.f.violated("rotated", "%s: %s: generation %d is delivered, want %d", h.name, n.ID, a.generation, n.Generation)
		}
	}
}

// attempts returns the maximum number of attempts of a request within a period. There are a few
// attempts while the waits grow. Then there is one attempt in each half of the longest wait. Some
// more are allowed, because waits are random.
func (f *Fleet) attempts(d time.Duration) int {
	longest := f.Backoff.Max
	if longest == 0 {
		longest = 5 * time.Minute
	}
	return 24 + int(1.5*float64(d)/float64(longest/2))
}

// bounded checks the law "bounded": a host does not connect more often than backoff allows. Backoff
// starts again with each life and with each commit.
func (h *Host) bounded() {
	d := time.Since(h.f.began)
	most := len(h.needs) * (h.f.attempts(d) + 2*h.lives)
	if n := h.f.net.count(h.name); n > most {
		h.f.violated("bounded", "%s: %d connections in %s, want at most %d", h.name, n, d, most)
	}
}

// idle checks the law "idle": one more activation sends requests only for needs that are due.
func (h *Host) idle() {
	due := 0
	for _, n := range h.needs {
		s, err := h.State().NeedState(n.ID)
		h.f.must(err)
		if at, ok := (needstate.State{NeedState: s}).Due(n.Renew); ok && !at.After(time.Now()) {
			due++
		}
	}
	before := h.f.net.count(h.name)
	c := h.config(&life{process: &h.process})
	c.Once = true
	if _, err := activation.Run(context.Background(), c); err != nil {
		h.f.violated("idle", "%s: %v", h.name, err)
	}
	if n := h.f.net.count(h.name) - before; n > due {
		h.f.violated("idle", "%s: a second activation asks %d times, %d needs are due", h.name, n, due)
	}
}
