package ingress

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/unixsock"
)

// These are the names of the files that a need of kind oidc delivers.
const (
	fileIssuer       = "issuer"
	fileClientID     = "client-id"
	fileClientSecret = "client-secret"
)

// serveGate answers the proxy at the socket of the gate until ctx ends. Any account may connect,
// because the gate trusts only cookies that it sealed itself.
func (c Config) serveGate(ctx context.Context, g *Gate) error {
	if err := os.MkdirAll(filepath.Dir(c.Socket), 0o711); err != nil {
		return err
	}
	l, err := unixsock.Listen(c.Socket, "unix", 0o666)
	if err != nil {
		return err
	}
	s := &http.Server{Handler: g, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	return conns.Serve(ctx, s, conns.Patient(l, c.Log))
}

// gatesOf returns the sites of a manifest whose visitors must sign in. It also returns the
// directories to which the credentials of their clients are delivered.
func gatesOf(layout hostdir.Layout, m document.Manifest) (sites []GateSite, dirs []string, err error) {
	for _, r := range m.Forwarder.Reach {
		if r.Gate == nil || r.TLSName == "" {
			continue
		}
		dir := layout.Need(r.Gate.Need)
		dirs = append(dirs, dir)
		client, err := clientOf(hostdir.Current(dir))
		if err != nil {
			return nil, dirs, err
		}
		for _, name := range append([]string{r.TLSName}, r.TLSAliases...) {
			sites = append(sites, GateSite{
				Name: name, Service: r.ID.String(), Client: client, Session: time.Duration(r.Gate.Session) * time.Second, Own: r.Gate.Own, Groups: r.Gate.Groups,
			})
		}
	}
	return sites, dirs, nil
}

// clientOf reads the credentials of a client from a directory. It returns nil if they are not
// delivered.
func clientOf(dir string) (*GateClient, error) {
	var c GateClient
	for name, to := range map[string]*string{fileIssuer: &c.Issuer, fileClientID: &c.ID, fileClientSecret: &c.Secret} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if *to = strings.TrimSpace(string(b)); *to == "" {
			return nil, fmt.Errorf("%s: empty", filepath.Join(dir, name))
		}
	}
	// The key of the cookies is derived from the secret.
	if len(c.Secret) < minSecret {
		return nil, fmt.Errorf("%s: %d characters, want %d or more, because the cookies of sessions depend on it", filepath.Join(dir, fileClientSecret), len(c.Secret), minSecret)
	}
	return &c, nil
}

const minSecret = 32 // characters; 128 bits in hexadecimal

// Entry is a path of a site at which the gate, and not the service, answers. It contains the
// decision of the site's rules about requests for this path.
type Entry struct {
	Path     string
	Decision document.Decision
}

// GateEntries returns the paths of a site that the gate itself answers, at which people complete a
// sign-in and sign out.
func (s Site) GateEntries() (all []Entry) {
	for _, path := range []string{CallbackPath, SignOutPath} {
		all = append(all, Entry{path, s.Rules.At(path)})
	}
	return all
}
