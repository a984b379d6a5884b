package ingress

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/httpreply"
	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
)

// Ensure configures a reverse proxy on a machine that is not a host of the cluster. It learns the
// public names from requests of a provider, for a kind of need that the topology defines
// (providers.<kind>.url, see package own of providers):
//
//	POST /proxy/ensure {…,"service":"spiffe://…","need":"proxy-wiki-web","request":{"name":"wiki.example.org","upstream":"10.0.0.5:8080"},…}
//	→ {"values":{"name":"wiki.example.org"}}
//
// A repeated request changes nothing. A name belongs to the first need that has requested it, until
// a person removes the name from the file.
type Ensure struct {
	File         string // JSON file that stores the names
	Certificates string // directory with <name>/fullchain.pem and key.pem, kept by a program that renews them
	Proxy        Proxy
	Poll         time.Duration // interval at which the certificates are read again
	Log          *slog.Logger

	mu sync.Mutex
}

// ensured is an entry in the file of an Ensure: a public name that a need has requested.
type ensured struct {
	Name     string         `json:"name"`
	Upstream netip.AddrPort `json:"upstream"`
}

// maxCall is the maximum size in bytes of a request to an Ensure.
const maxCall = 64 << 10

var hostname = regexp.MustCompile("^" + spiffe.HostnamePattern + "$")

// Serve answers requests on the listener l until ctx ends. It does not authenticate callers, so
// only trusted processes may be able to connect to l.
func (e *Ensure) Serve(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /proxy/ensure", e.answer)
	s := &http.Server{Handler: mux, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute, MaxHeaderBytes: 16 << 10, BaseContext: func(net.Listener) context.Context { return ctx }}
	var owned sync.WaitGroup
	defer owned.Wait()
	owned.Go(func() { e.follow(ctx) })
	return conns.Serve(ctx, s, conns.Patient(l, e.Log))
}

// follow applies the names and certificates at intervals until ctx ends, because certificates are
// renewed and proxies are restarted.
func (e *Ensure) follow(ctx context.Context) {
	tick := time.NewTicker(e.Poll)
	defer tick.Stop()
	var failed journal.Once
	for {
		e.mu.Lock()
		names, err := e.read()
		if err == nil {
			_, err = e.Proxy.Apply(ctx, e.sites(names))
		}
		e.mu.Unlock()
		if ctx.Err() == nil && failed.News(err) {
			e.Log.Warn("public names stay as they are", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (e *Ensure) answer(w http.ResponseWriter, r *http.Request) {
	var out any
	name, kind, err := e.ensure(r.Context(), http.MaxBytesReader(w, r.Body, maxCall))
	if err != nil {
		e.Log.Warn("a name is not ensured", "error", err)
		out = map[string]any{"error": map[string]string{"kind": kind, "message": err.Error()}}
	} else {
		out = map[string]any{"values": map[string]string{"name": name}}
	}
	httpreply.JSON(w, http.StatusOK, out)
}

func (e *Ensure) ensure(ctx context.Context, body io.Reader) (name, kind string, err error) {
	var call struct {
		Service string          `json:"service"`
		Need    string          `json:"need"`
		Request json.RawMessage `json:"request"`
	}
	var wants ensured
	if err := json.NewDecoder(body).Decode(&call); err != nil {
		return "", "invalid", fmt.Errorf("request: %w", err)
	}
	switch err := strictjson.Decode(call.Request, &wants); {
	case err != nil:
		return "", "invalid", fmt.Errorf(`request: %w: want {"name":"wiki.example.org","upstream":"10.0.0.5:8080"}`, err)
	case len(wants.Name) > 253 || !hostname.MatchString(wants.Name) || !strings.Contains(wants.Name, "."):
		return "", "invalid", fmt.Errorf("name %.100q: want a lower-case DNS name of two labels or more", wants.Name)
	case call.Service == "" || call.Need == "":
		return "", "invalid", errors.New("service and need: missing")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	names, err := e.read()
	if err != nil {
		return "", "transient", err
	}
	at := call.Service + " " + call.Need
	for other, has := range names {
		if other != at && has.Name == wants.Name {
			return "", "denied", fmt.Errorf("name %s: %s has it: take it out of %s where that is over", wants.Name, other, e.File)
		}
	}
	names[at] = wants
	if _, err := e.Proxy.Apply(ctx, e.sites(names)); err != nil {
		return "", "transient", err
	}
	b, err := json.MarshalIndent(names, "", "  ")
	if err == nil {
		err = atomicfile.File(e.File, append(b, '\n'), 0o600)
	}
	return wants.Name, "transient", err
}

func (e *Ensure) read() (map[string]ensured, error) {
	names := map[string]ensured{}
	b, err := os.ReadFile(e.File)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(bytes.TrimSpace(b)) == 0 {
		return names, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &names)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.File, err)
	}
	return names, nil
}

func (e *Ensure) sites(names map[string]ensured) (s Sites) {
	for n := range maps.Values(names) {
		site := Site{Name: n.Name, Upstream: n.Upstream}
		crt, key := filepath.Join(e.Certificates, n.Name, fileCertificate), filepath.Join(e.Certificates, n.Name, fileKey)
		if digest, ok := usable(crt, key); ok {
			site.Certificate, site.Key, site.Digest = crt, key, digest
		}
		s.All = append(s.All, site)
	}
	slices.SortFunc(s.All, func(a, b Site) int { return strings.Compare(a.Name, b.Name) })
	return s
}
