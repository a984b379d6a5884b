package hostapi_test

import (
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/florete/florete/tests/kit"
)

func TestWatchVectors(t *testing.T) {
	var all []struct {
		Name, Target, Revision string
		From, Serial           int64
		Status                 int
		NotModified            bool
	}
	vectors(t, "watch.json", &all)
	if len(all) == 0 {
		t.Error("no vectors")
	}
	for _, v := range all {
		t.Run(v.Name, func(t *testing.T) {
			d := domain{t, kit.NewCA()}
			c := d.client(d.Issue(provider, time.Hour), func(w http.ResponseWriter, r *http.Request) {
				if got := r.URL.RequestURI(); got != v.Target || r.Header.Get("If-None-Match") != `"tag"` {
					t.Errorf("requested %s with the tag %s, want %s", got, r.Header.Get("If-None-Match"), v.Target)
				}
				w.Header().Set("Documents-Revision", v.Revision)
				w.WriteHeader(v.Status)
				if v.Status == http.StatusOK {
					io.WriteString(w, `{"documents":[]}`)
				}
			})
			c.Serial, c.Tag, c.HostKey = v.Serial, `"tag"`, kit.NewHostKey()
			p := c.Calls()
			defer p.Close()
			a, err := p.Watch(t.Context(), v.From)
			if err != nil || a.NotModified != v.NotModified || strconv.FormatInt(a.Revision, 10) != v.Revision {
				t.Errorf("got %+v, %v", a, err)
			}
		})
	}
}
