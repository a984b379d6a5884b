package main

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/bench/pair"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// tunnel is a way to connect a client to the upstream, for example two forwarders or stunnel.
type tunnel struct {
	name  string
	start func(upstream string) (*pair.Pair, error)
}

const (
	quic       = "quic"
	tcp        = "tcp"
	relay      = "relay"
	relayTCP   = "relay-tcp"
	raw        = "raw"
	stunnel    = "stunnel"
	ghostunnel = "ghostunnel"
	direct     = "direct"
)

// tunnels lists the tunnels in the order in which each run measures them.
var tunnels = []tunnel{
	{quic, func(u string) (*pair.Pair, error) { return pair.Forwarders(u, "", document.OverQUIC) }},
	{raw, startRaw},
	{tcp, func(u string) (*pair.Pair, error) { return pair.Forwarders(u, "", document.OverTCP) }},
	{relay, func(u string) (*pair.Pair, error) { return pair.Relayed(u, document.OverQUIC) }},
	{relayTCP, func(u string) (*pair.Pair, error) { return pair.Relayed(u, document.OverTCP) }},
	{ghostunnel, startGhostunnel},
	{stunnel, startStunnel},
	{direct, func(u string) (*pair.Pair, error) { return &pair.Pair{Addr: u}, nil }},
}

// keys contains the paths of the files with which both ends of a tunnel authenticate: the
// certificate chain, the private key and the root certificate.
type keys struct{ chain, key, root string }

func newKeys(dir string) (k keys, err error) {
	ca := kit.NewCA()
	svid := ca.Issue(agenttest.Outline, time.Hour)
	svid.Leaf.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} // ghostunnel also requires a host name or an address
	svid.Certificate[0], err = x509.CreateCertificate(rand.Reader, svid.Leaf, ca.Issuing.Certificate, svid.Leaf.PublicKey, ca.Issuing.Key)
	if err != nil {
		return k, err
	}
	chain, key := kit.EncodeSVID(svid)
	k = keys{filepath.Join(dir, "chain"), filepath.Join(dir, "key"), filepath.Join(dir, "root")}
	return k, errors.Join(os.WriteFile(k.chain, chain, 0o600), os.WriteFile(k.key, key, 0o600), os.WriteFile(k.root, []byte(ca.RootPEM()), 0o600))
}

// config returns the TLS configuration of an end of a tunnel. It does not check host names, because
// SVIDs have none.
func (k keys) config() (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(k.chain, k.key)
	if err != nil {
		return nil, err
	}
	pem, err := os.ReadFile(k.root)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	verify := func(cs tls.ConnectionState) error {
		between := x509.NewCertPool()
		for _, c := range cs.PeerCertificates[1:] {
			between.AddCert(c)
		}
		_, err := cs.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
		return err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"raw"}, Certificates: []tls.Certificate{cert},
		ClientAuth: tls.RequireAnyClientCert, InsecureSkipVerify: true, VerifyConnection: verify, SessionTicketsDisabled: true,
	}, nil
}

// ends prepares the two ends of a tunnel. It returns the pair, the keys for both ends, and the
// address at which the ends connect to each other.
func ends() (p *pair.Pair, k keys, between string, err error) {
	p = &pair.Pair{}
	dir, err := p.Dir()
	if err != nil {
		return p, k, "", err
	}
	if k, err = newKeys(dir); err != nil {
		return p, k, "", err
	}
	p.Addr = kit.Address()
	return p, k, kit.Address(), nil
}

// ready waits until a tunnel works. If the tunnel does not work in time, it is stopped.
func ready(p *pair.Pair, err error) (*pair.Pair, error) {
	if err == nil {
		err = pair.Wait(func() error { return once(p.Addr) })
	}
	if err != nil {
		p.Stop()
	}
	return p, err
}

// program returns the path of a program, which a script has put into an environment variable.
func program(env string) (string, error) {
	if path := os.Getenv(env); path != "" {
		return path, nil
	}
	return "", errors.New("not on this machine")
}

func startGhostunnel(upstream string) (*pair.Pair, error) {
	path, err := program("FLORETE_GHOSTUNNEL")
	if err != nil {
		return nil, err
	}
	p, k, between, err := ends()
	common := []string{"--cert", k.chain, "--key", k.key, "--cacert", k.root, "--quiet", "all"}
	if err == nil {
		err = p.Start(nil, append([]string{path, "server", "--listen", between, "--target", upstream, "--allow-uri", agenttest.Outline.String()}, common...)...)
	}
	if err == nil {
		err = p.Start(nil, append([]string{path, "client", "--listen", p.Addr, "--target", between, "--verify-uri", agenttest.Outline.String()}, common...)...)
	}
	return ready(p, err)
}

func startStunnel(upstream string) (*pair.Pair, error) {
	command, err := program("FLORETE_STUNNEL")
	if err != nil {
		return nil, err
	}
	p, k, between, err := ends()
	for _, end := range []struct{ client, accept, connect string }{{"no", between, upstream}, {"yes", p.Addr, between}} {
		if err != nil {
			break
		}
		conf := filepath.Join(filepath.Dir(k.chain), end.client)
		err = os.WriteFile(conf, fmt.Appendf(nil, "foreground = yes\npid =\ndebug = crit\nlibwrap = no\n"+
			"[bench]\nclient = %s\naccept = %s\nconnect = %s\ncert = %s\nkey = %s\nCAfile = %s\nverifyChain = yes\nsslVersionMin = TLSv1.3\n",
			end.client, end.accept, end.connect, k.chain, k.key, k.root), 0o600)
		if err == nil {
			err = p.Start(nil, append(strings.Fields(command), conf)...)
		}
	}
	return ready(p, err)
}
