// Package ingress configures the reverse proxy of a host to serve the public names of the cluster.
// The proxy is nginx, configured through a file, or Caddy, configured through its admin API. The
// public names and the local listeners of their services are in the manifest. The certificates are
// delivered by needs of kind tls.
//
// A new configuration is made when the manifest or a certificate changes. The proxy tests it, and
// keeps the old one if the new one is not valid. A name without a certificate answers only ACME
// challenges. A name that is not published is refused. Requests to a published name obey the rules of
// its service. A Gate signs people in, for services that require it.
package ingress

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/journal"
)

// Config configures an ingress that Run keeps up to date.
type Config struct {
	Layout hostdir.Layout
	Proxy  Proxy
	Poll   time.Duration // maximum interval between checks for changes; default 10 s
	Socket string        // path of the Unix socket at which the proxy asks the gate
	Log    *slog.Logger
}

// Proxy is a reverse proxy that Run can configure. Nginx and Caddy implement it.
type Proxy interface {
	// Apply makes the proxy serve exactly the given sites. It applies all of them or, on an error,
	// none. It reports whether the configuration changed. Run calls Apply repeatedly.
	Apply(ctx context.Context, s Sites) (changed bool, err error)
}

// Sites contains all that a proxy needs to know to serve the public names of the cluster.
type Sites struct {
	Thumbprint string // thumbprint of the ACME account, used to answer challenges; may be empty
	All        []Site // sorted by name, wildcards last, because an exact name takes precedence
	Gate       string // path of the socket of the gate, for sites whose visitors must sign in

	Local     []uint16     // ports on loopback that the cluster's local listeners use
	Addresses []netip.Addr // addresses of this host without loopback
}

// Site is a public name that the ingress serves. A name that begins with "*." is a wildcard, in
// which "*" stands for exactly one label.
type Site struct {
	Name     string
	Upstream netip.AddrPort
	GRPC     bool

	// Redirect is the name to which visitors are redirected. It is empty for a name of a service.
	Redirect string

	// Gated reports whether visitors must sign in.
	Gated bool

	Rules document.PublicRules
	Ports map[string]netip.AddrPort // listeners of the service's ports by name, for the rules

	// Certificate and Key are the paths of the certificate with its chain (PEM) and of its key.
	// Digest is a digest of both files. All three are empty while there is no certificate.
	Certificate, Key, Digest string
}

// These are the names of the files that a need of kind tls delivers.
const (
	fileCertificate = "fullchain.pem"
	fileKey         = "key.pem"
	fileThumbprint  = "thumbprint"
)

// Run keeps the proxy configured for the manifest and the certificates on disk, until ctx ends.
// Errors are logged and retried. Meanwhile the proxy keeps its configuration.
func Run(ctx context.Context, c Config) error {
	c.Poll = cmp.Or(c.Poll, 10*time.Second)
	var failed, gateFailed journal.Once
	var document document.Document
	asked := NewGate(c.Log)
	var serving sync.WaitGroup
	defer serving.Wait()
	serving.Go(func() {
		// Without the gate, the proxy passes no request to the sites of the gate.
		for c.Socket != "" && ctx.Err() == nil {
			if err := c.serveGate(ctx, asked); ctx.Err() == nil && gateFailed.News(err) {
				c.Log.Error("nobody can sign in at public names", "error", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(c.Poll):
			}
		}
	})
	hostdir.Follow(ctx, c.Log, c.Poll, func() []string {
		dirs, err := c.apply(ctx, &document, asked)
		none := errors.Is(err, fs.ErrNotExist) // no documents are in force yet
		if !none && ctx.Err() == nil && failed.News(err) {
			c.Log.Warn("public names stay as they are", "error", err)
		}
		return append(dirs, c.Layout.Documents())
	})
	return nil
}

// apply configures the proxy for the manifest and the certificates on disk. It returns the
// directories that Run must watch, because apply must be called again after a change in them.
func (c Config) apply(ctx context.Context, document *document.Document, g *Gate) (dirs []string, err error) {
	doc, err := c.Layout.Refresh(*document)
	if err != nil {
		return nil, err
	}
	*document = doc
	sites, dirs, err := sitesOf(c.Layout, doc.Manifest())
	if err == nil {
		err = sites.listen(doc.Manifest().Forwarder)
	}
	if err != nil {
		return dirs, err
	}
	gates, clients, err := gatesOf(c.Layout, doc.Manifest())
	dirs = append(dirs, clients...)
	if err != nil {
		return dirs, err
	}
	g.Set(gates)
	sites.Gate = c.Socket
	changed, err := c.Proxy.Apply(ctx, sites)
	if changed {
		served := slices.DeleteFunc(slices.Clone(sites.All), func(s Site) bool { return s.Certificate == "" })
		c.Log.Info("public names are up to date", "names", len(sites.All), "certificates", len(served))
	}
	return dirs, err
}

// sitesOf returns the sites of a manifest. It also returns the directories to which their
// certificates are delivered.
func sitesOf(layout hostdir.Layout, m document.Manifest) (s Sites, dirs []string, err error) {
	type delivered struct {
		document.PublicNames
		dir string
	}
	var certificates []delivered
	for _, n := range m.Needs {
		if n.Kind != document.KindTLS {
			continue
		}
		names, err := n.PublicNames()
		if err != nil {
			return s, dirs, err
		}
		dir := layout.Need(n.ID)
		dirs = append(dirs, dir)
		if len(names.Names) > 0 {
			certificates = append(certificates, delivered{names, hostdir.Current(dir)})
			continue
		}
		b, err := os.ReadFile(filepath.Join(hostdir.Current(dir), fileThumbprint))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return s, dirs, err
		}
		if s.Thumbprint = strings.TrimSpace(string(b)); !isThumbprint(s.Thumbprint) {
			s.Thumbprint = ""
		}
	}
	for _, r := range m.Forwarder.Reach {
		if r.TLSName == "" {
			continue
		}
		ports, err := portsOf(r, m.Forwarder.Reach)
		if err != nil {
			return s, dirs, err
		}
		names := slices.Concat([]string{r.TLSName}, r.TLSAliases, slices.Collect(maps.Keys(r.Redirects)))
		for _, name := range names {
			site := Site{Name: name, Upstream: r.Listen, GRPC: r.GRPC, Redirect: r.Redirects[name], Gated: r.Gate != nil, Rules: r.Ingress, Ports: ports}
			for _, c := range certificates {
				if !slices.ContainsFunc(c.Names, func(n string) bool { return n == site.Name || document.Covers(n, site.Name) }) {
					continue
				}
				crt, key := filepath.Join(c.dir, fileCertificate), filepath.Join(c.dir, fileKey)
				if digest, ok := usable(crt, key); ok {
					site.Certificate, site.Key, site.Digest = crt, key, digest
				}
			}
			s.All = append(s.All, site)
		}
	}
	slices.SortFunc(s.All, func(a, b Site) int {
		if wild := document.IsWildcard(a.Name); wild != document.IsWildcard(b.Name) {
			return map[bool]int{true: 1, false: -1}[wild]
		}
		return strings.Compare(a.Name, b.Name)
	})
	return s, dirs, nil
}

// isThumbprint reports whether s is a valid thumbprint of an ACME account. A valid thumbprint can
// be written into a proxy's configuration without quoting.
func isThumbprint(s string) bool {
	return len(s) == 43 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// usable reports whether a certificate belongs to its key. A proxy would not start with a pair that
// does not match. The result digest is a digest of both files, by which a renewed certificate is
// noticed.
func usable(crt, key string) (digest string, ok bool) {
	c, err := os.ReadFile(crt)
	if err != nil {
		return "", false
	}
	k, err := os.ReadFile(key)
	if err != nil {
		return "", false
	}
	if _, err := tls.X509KeyPair(c, k); err != nil {
		return "", false
	}
	return fmt.Sprintf("%x", sha256.Sum256(append(c, k...)))[:16], true
}
