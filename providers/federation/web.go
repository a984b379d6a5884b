package federation

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/florete/florete/internal/conns"
)

// These are the profiles of a bundle endpoint (SPIFFE Federation section 5.2).
const (
	profileSPIFFE = "https_spiffe" // the bundle in force verifies the endpoint's SPIFFE ID
	profileWeb    = "https_web"    // a public CA certifies the name in the endpoint's URL
)

// Web configures an endpoint that serves the trust bundle with an ordinary web certificate (SPIFFE
// profile https_web). It is for callers that cannot verify an SVID. The zero value means no such
// endpoint.
type Web struct {
	Listen      string // host:port; empty for no endpoint
	Certificate string // file with the certificate chain in PEM
	Key         string // file with the key of the certificate
}

// webConnections limits the open connections to the endpoint, in total and for each network.
var webConnections = conns.Limit{Total: 256, Prefix: 32}

// check returns an error if the settings are incomplete or the files cannot be read.
func (w Web) check() error {
	if w.Listen == "" && w.Certificate == "" && w.Key == "" {
		return nil
	}
	if w.Listen == "" || w.Certificate == "" || w.Key == "" {
		return errors.New(Name + ": want listen, certificate and key, for a bundle endpoint of profile https_web, or none of them")
	}
	_, err := w.load()
	return err
}

func (w Web) load() (*tls.Certificate, error) {
	c, err := tls.LoadX509KeyPair(w.Certificate, w.Key)
	if err != nil {
		return nil, fmt.Errorf("%s certificate: %w", Name, err)
	}
	return &c, nil
}

// serveWeb serves the bundle until ctx ends. It reads the certificate for each connection, so that
// a renewed certificate needs no restart.
func (f *Federation) serveWeb(ctx context.Context) error {
	l, err := net.Listen("tcp", f.Web.Listen)
	if err != nil {
		return fmt.Errorf("%s listen: %w", Name, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc(bundleRoute, f.serveBundle)
	hs := &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 20 * time.Second, IdleTimeout: 20 * time.Second,
		MaxHeaderBytes: 16 << 10, ConnContext: conns.Context, ConnState: conns.State, ErrorLog: slog.NewLogLogger(f.Logger.Handler(), slog.LevelDebug),
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.Web.load() }}
	f.Logger.Info("bundle endpoint of profile https_web serves", "listen", l.Addr().String())
	return conns.Serve(ctx, hs, tls.NewListener(conns.Listen(conns.Patient(l, f.Logger), webConnections), config))
}
