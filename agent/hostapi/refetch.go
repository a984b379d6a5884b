package hostapi

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete"
)

// errNoNeed: the manifest has no such need.
var errNoNeed = errors.New("no such need")

// Refetch has activation request a need again, within ten seconds: it leaves a file in
// dir that activation sees. Root may be who calls, and dir another account's: no link
// there leads out of it.
func Refetch(m florete.Manifest, dir, need string) error {
	var ids []string
	for _, n := range m.Needs {
		ids = append(ids, n.ID)
	}
	if !slices.Contains(ids, need) {
		return fmt.Errorf("%w %q: this host has %s", errNoNeed, need, strings.Join(ids, ", "))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	now := time.Now()
	return errors.Join(root.WriteFile(need, nil, 0o644), root.Chtimes(need, now, now))
}

func (h *handler) refetch(w http.ResponseWriter, r *http.Request) {
	doc, ok := h.read(w)
	if !ok {
		return
	}
	id := r.URL.Query().Get("need")
	switch err := Refetch(doc.Manifest(), h.Refetch, id); {
	case errors.Is(err, errNoNeed):
		http.Error(w, err.Error(), http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(w, "need %s: activation requests it again within ten seconds\n", id)
	}
}
