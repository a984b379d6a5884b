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

// Config is whose names are taken in, and by what.
type Config struct {
	Layout hostdir.Layout
	Proxy  Proxy
	Poll   time.Duration // how often all is read anyway; 10 seconds unless set
	Log    *slog.Logger
}

// Proxy is a reverse proxy.
type Proxy interface {
	// Apply puts sites in force, all or nothing, and returns whether that changed anything. It
	// is called again and again.
	Apply(ctx context.Context, s Sites) (changed bool, err error)
}

// Sites are what strangers reach.
type Sites struct {
	Thumbprint string // of the ACME account, with which challenges are answered; may be empty
	All        []Site // sorted by name, wildcards last: what has a name of its own is not of one

	Local     []uint16     // ports of listeners of the cluster on loopback
	Addresses []netip.Addr // of this host, beside loopback
}

// Site is one public name, or with a wildcard all of one label before what follows "*.".
type Site struct {
	Name     string
	Upstream netip.AddrPort
	GRPC     bool

	// Files of the certificate (PEM, with its chain) and of its key, empty while there is none,
	// and what distinguishes one certificate from another.
	Certificate, Key, Digest string
}

// Names of what needs of kind tls deliver.
const (
	fileCertificate = "fullchain.pem"
	fileKey         = "key.pem"
	fileThumbprint  = "thumbprint"
)

// Run follows manifest and certificates until ctx ends. What fails is logged, and tried again.
func Run(ctx context.Context, c Config) error {
	if c.Poll == 0 {
		c.Poll = 10 * time.Second
	}
	var failed journal.Once
	var document document.Document
	watch.Follow(ctx, c.Log, c.Poll, func() []string {
		dirs, err := c.apply(ctx, &document)
		none := errors.Is(err, fs.ErrNotExist) // documents, yet
		if !none && ctx.Err() == nil && failed.News(err) {
			c.Log.Warn("public names stay as they are", "error", err)
		}
		return append(dirs, c.Layout.Documents())
	})
	return nil
}

// apply puts in force what is on disk, and returns the directories that this depends on.
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

// sitesOf are those of a manifest, and the directories of their needs.
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

// isThumbprint is whether a text is safe in a file of a proxy's.
func isThumbprint(s string) bool {
	return len(s) == 43 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// usable is whether a certificate goes with its key, and the digest of both: a proxy that is
// given one of each would not start.
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
