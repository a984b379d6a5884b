package localapi

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
)

var (
	errNoNeed   = errors.New("no such need")        // the manifest has no such need
	errNoSecret = errors.New("no secret to rotate") // the need has no secret
)

// These texts describe the requests to activation in responses.
const (
	Again         = "it again"
	AnotherSecret = "another secret"
)

// Refetch makes activation request a need again within ten seconds. It writes a file to dir, a
// directory that activation watches. It does not follow symbolic links out of dir, because it may
// run as root although another account owns dir. Refetch returns an error if the manifest has no
// such need.
func Refetch(m document.Manifest, dir, need string) error {
	if _, err := find(m, need); err != nil {
		return err
	}
	return leave(dir, need)
}

// Rotate makes activation request a new secret for a need within ten seconds, in the same way as
// Refetch. The old secret stops working when the provider answers. Rotate returns an error if the
// need is a certificate, which has no secret.
func Rotate(m document.Manifest, dir, need string) error {
	n, err := find(m, need)
	if err != nil {
		return err
	}
	if n.Kind == document.KindCert {
		return fmt.Errorf("need %q: %w: a certificate's key is made here, and another one each time: flor refetch %[1]s", need, errNoSecret)
	}
	return leave(dir, hostdir.RotateFile(need))
}

func find(m document.Manifest, need string) (document.Need, error) {
	var ids []string
	for _, n := range m.Needs {
		if n.ID == need {
			return n, nil
		}
		ids = append(ids, n.ID)
	}
	return document.Need{}, fmt.Errorf("%w %q: this host has %s", errNoNeed, need, strings.Join(ids, ", "))
}

func leave(dir, name string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	now := time.Now()
	return errors.Join(root.WriteFile(name, nil, 0o644), root.Chtimes(name, now, now))
}

// act serves a request to refetch a need or to rotate its secret. The function leave passes the
// request to activation.
func (h *handler) act(leave func(m document.Manifest, dir, need string) error, what string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		doc, ok := h.read(w)
		if !ok {
			return
		}
		id := r.URL.Query().Get("need")
		switch err := leave(doc.Manifest(), h.Refetch, id); {
		case errors.Is(err, errNoNeed):
			http.Error(w, err.Error(), http.StatusNotFound)
		case errors.Is(err, errNoSecret):
			http.Error(w, err.Error(), http.StatusBadRequest)
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprintf(w, "need %s: activation requests %s within ten seconds\n", id, what)
		}
	}
}
