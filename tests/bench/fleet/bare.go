package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/tests/kit"
)

// call contains the minimum that a host must send on one connection, namely its proof and its
// certificate requests.
type call struct {
	Node   string
	Key    []byte // SSH public key in wire format
	Proof  *hostapi.Proof
	Device string
	CSRs   []string // in PEM
}

// minimum measures the time for the handshakes and signatures of all hosts, without any other work.
// Each host makes three connections with their proofs:
//
//   - one to enrol,
//   - one to get the certificates of its services, and
//   - one to get its documents.
func (c cluster) minimum() (time.Duration, error) {
	began := time.Now()
	work := make(chan node)
	errs := make([]error, atOnce)
	var all sync.WaitGroup
	for i := range atOnce {
		all.Go(func() {
			for n := range work {
				if errs[i] == nil {
					errs[i] = c.bareHost(n)
				}
			}
		})
	}
	for _, n := range c.nodes {
		work <- n
	}
	close(work)
	all.Wait()
	return time.Since(began), errors.Join(errs...)
}

func (c cluster) bareHost(n node) error {
	key := kit.NewKey()
	chains, err := c.bareCall(n, nil, kit.CSR(n.id, key))
	if err != nil {
		return err
	}
	svid := &tls.Certificate{Certificate: chains[0], PrivateKey: key}
	var csrs []string
	for _, id := range n.services {
		csrs = append(csrs, kit.CSR(id, kit.NewKey()))
	}
	_, err = c.bareCall(n, svid, csrs...)
	if err == nil && c.documents {
		_, err = c.bareCall(n, svid)
	}
	return err
}

// bareCall makes one connection of a host. It returns the certificate chains that the host
// received.
func (c cluster) bareCall(n node, svid *tls.Certificate, csrs ...string) (chains [][][]byte, err error) {
	config := &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, VerifyConnection: func(cs tls.ConnectionState) error {
		_, err := hostapi.Peer(cs.PeerCertificates, c.roots, x509.ExtKeyUsageServerAuth)
		return err
	}}
	if svid != nil {
		config.Certificates = []tls.Certificate{*svid}
	}
	conn, err := tls.Dial("tcp", c.address(portBare), config)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	state := conn.ConnectionState()
	binding, err := hostapi.ChannelBinding(&state)
	if err != nil {
		return nil, err
	}
	q := call{Node: n.id.String(), Key: n.key.PublicKey().Marshal(), CSRs: csrs}
	if svid == nil {
		block, _ := pem.Decode([]byte(csrs[0]))
		q.Proof, err = hostapi.Statement{Node: n.id, Provider: kit.ProviderID(provider, "cert"), Nonce: "bare", CSR: block.Bytes, Binding: binding}.Sign(n.key)
	} else {
		q.Device, err = hostapi.DeviceStatement{Node: n.id, Provider: kit.ProviderID(provider, "cert"), Binding: binding}.Sign(n.key)
	}
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(conn).Encode(q); err != nil {
		return nil, err
	}
	err = json.NewDecoder(conn).Decode(&chains)
	return chains, err
}

// listenBare starts a listener that answers the calls of bareCall.
func (c cluster) listenBare() (net.Listener, error) {
	svid := c.ca.Issue(kit.ProviderID(provider, "cert"), time.Hour)
	l, err := tls.Listen("tcp", c.address(portBare), &tls.Config{
		MinVersion: tls.VersionTLS13, ClientAuth: tls.RequestClientCert, SessionTicketsDisabled: true, Certificates: []tls.Certificate{*svid},
	})
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_ = c.answerBare(conn.(*tls.Conn))
			}()
		}
	}()
	return l, nil
}

func (c cluster) answerBare(conn *tls.Conn) error {
	if err := conn.HandshakeContext(context.Background()); err != nil {
		return err
	}
	state := conn.ConnectionState()
	binding, err := hostapi.ChannelBinding(&state)
	if err != nil {
		return err
	}
	var q call
	if err := json.NewDecoder(conn).Decode(&q); err != nil {
		return err
	}
	return c.verifyBare(conn, q, state, binding)
}

func (c cluster) verifyBare(conn *tls.Conn, q call, state tls.ConnectionState, binding []byte) error {
	node, err := spiffe.ParseID(q.Node)
	if err != nil {
		return err
	}
	key, err := ssh.ParsePublicKey(q.Key)
	if err != nil {
		return err
	}
	if q.Proof != nil {
		block, _ := pem.Decode([]byte(q.CSRs[0]))
		err = hostapi.Statement{Node: node, Provider: kit.ProviderID(provider, "cert"), Nonce: "bare", CSR: block.Bytes, Binding: binding}.Verify(q.Proof, key)
	} else if _, err = hostapi.Peer(state.PeerCertificates, c.roots, x509.ExtKeyUsageClientAuth); err == nil {
		err = hostapi.DeviceStatement{Node: node, Provider: kit.ProviderID(provider, "cert"), Binding: binding}.Verify(q.Device, key)
	}
	if err != nil {
		return err
	}
	chains := [][][]byte{}
	for _, text := range q.CSRs {
		block, _ := pem.Decode([]byte(text))
		csr, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			return err
		}
		if err := csr.CheckSignature(); err != nil {
			return err
		}
		leaf, err := c.ca.Issuing.Issue(ca.SVID{ID: node, Key: csr.PublicKey, Until: time.Now().Add(time.Hour)}, time.Now())
		if err != nil {
			return err
		}
		chains = append(chains, [][]byte{leaf.Raw, c.ca.Issuing.Certificate.Raw})
	}
	return json.NewEncoder(conn).Encode(chains)
}
