// Package ingress configures the reverse proxy of a host for the public names of the cluster: nginx
// through a configuration file, or Caddy through its admin API. The manifest contains the public
// names and the local listeners of their services; needs of kind tls deliver the certificates.
//
// The configuration follows both. A new configuration is rendered, tested and applied as a whole,
// and reverted if the proxy does not accept it. A name without a certificate answers only ACME
// challenges. A name that is not published is refused.
package ingress

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/agent/watch"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/journal"
)

// Config configures Run.
type Config struct {
	Layout hostdir.Layout
	Proxy  Proxy
	Poll   time.Duration // maximum interval between passes; default 10 s
	Log    *slog.Logger
}

// Proxy is a reverse proxy.
type Proxy interface {
	// Apply applies sites completely or not at all, and reports whether that changed anything. It
	// is called repeatedly.
	Apply(ctx context.Context, s Sites) (changed bool, err error)
}

// Sites contains the public names of the ingress.
type Sites struct {
	Thumbprint string // thumbprint of the ACME account, for answering challenges; may be empty
	All        []Site // sorted by name, wildcards last, because an exact name takes precedence over a wildcard

	Local     []uint16     // ports of the cluster's local listeners on loopback
	Addresses []netip.Addr // addresses of this host except loopback
}

// Site is a public name, or a wildcard "*.", which stands for any one label.
type Site struct {
	Name     string
	Upstream netip.AddrPort
	GRPC     bool

	// Files of the certificate (PEM, with its chain) and its key, empty while there is no
	// certificate, and a digest of both.
	Certificate, Key, Digest string
}

// Files delivered for needs of kind tls.
const (
	fileCertificate = "fullchain.pem"
	fileKey         = "key.pem"
	fileThumbprint  = "thumbprint"
)

// Run follows the manifest and the certificates until ctx ends. Errors are logged and retried.
func Run(ctx context.Context, c Config) error {
	if c.Poll == 0 {
		c.Poll = 10 * time.Second
	}
	var failed journal.Once
	var document document.Document
	watch.Follow(ctx, c.Log, c.Poll, func() []string {
		dirs, err := c.apply(ctx, &document)
		none := errors.Is(err, fs.ErrNotExist) // there are no documents yet
		if !none && ctx.Err() == nil && failed.News(err) {
			c.Log.Warn("public names stay as they are", "error", err)
		}
		return append(dirs, c.Layout.Documents())
	})
	return nil
}

// apply applies the state on disk and returns the directories on which it depends.
func (c Config) apply(ctx context.Context, document *document.Document) (dirs []string, err error) {
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
	changed, err := c.Proxy.Apply(ctx, sites)
	if changed {
		served := slices.DeleteFunc(slices.Clone(sites.All), func(s Site) bool { return s.Certificate == "" })
		c.Log.Info("public names are up to date", "names", len(sites.All), "certificates", len(served))
	}
	return dirs, err
}

// sitesOf returns the sites in a manifest, and the directories of their needs.
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
		for _, name := range append([]string{r.TLSName}, r.TLSAliases...) {
			site := Site{Name: name, Upstream: r.Listen, GRPC: r.GRPC}
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

// isThumbprint reports whether s is a valid thumbprint, which is safe in a proxy's configuration.
func isThumbprint(s string) bool {
	return len(s) == 43 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// usable reports whether a certificate belongs to its key, and returns the digest of both. A proxy
// with a mismatched pair would not start.
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
