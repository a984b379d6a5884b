package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/cert"
	"github.com/florete/florete/tests/kit"
)

// atOnce is the number of hosts that are connected at the same time. More hosts would only wait for
// each other, because all share the processors of the provider.
const atOnce = 64

// storm makes all hosts contact the provider at the same time. Each host has its own keys, requests
// and proofs. It makes one connection to enrol and another for the certificates of its services.
// The hosts do none of their other work, which is mostly with files. The benchmark scale measures
// that work.
func (c cluster) storm() (a arrival, err error) {
	own, allocated, began := ownUse(), allocations(), time.Now()
	free := make(chan struct{}, atOnce)
	errs := make([]error, len(c.nodes))
	var dialed atomic.Int64
	var all sync.WaitGroup
	for i, n := range c.nodes {
		all.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			errs[i] = c.come(n, dial(i, &dialed))
		})
	}
	all.Wait()
	a = arrival{took: time.Since(began), used: ownUse() - own, allocations: allocations() - allocated, connections: dialed.Load()}
	return a, errors.Join(errs...)
}

// come makes the two connections of one host in a storm and requests its certificates.
func (c cluster) come(n node, dial func(context.Context, string, string) (net.Conn, error)) error {
	client, err := c.enrol(n, dial)
	if err != nil {
		return err
	}
	pass := client.Calls()
	defer pass.Close()
	for i, id := range n.services {
		key := kit.NewKey()
		answer, err := pass.Do(context.Background(), hostapi.Path(cert.Name), c.request(id, n.needs[1+i], key))
		if err == nil {
			_, err = svid(answer, key)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
	}
	return nil
}

// enrol enrols a node. It returns a client that uses the node's new SVID.
func (c cluster) enrol(n node, dial func(context.Context, string, string) (net.Conn, error)) (*hostapi.Client, error) {
	client := &hostapi.Client{Node: n.id, Roots: c.roots, HostKey: n.key, Provider: c.providers()[cert.Name], Dial: dial}
	key := kit.NewKey()
	answer, err := client.Enrol(context.Background(), c.request(n.id, n.needs[0], key))
	if err == nil {
		client.SVID, err = svid(answer, key)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n.id, err)
	}
	return client, nil
}

// svid returns the SVID in an answer of the provider. It returns an error if the SVID does not
// belong to the key.
func svid(answer hostapi.Answer, key crypto.Signer) (*tls.Certificate, error) {
	c := &tls.Certificate{PrivateKey: key}
	for block, rest := pem.Decode([]byte(answer.Values["svid"])); block != nil; block, rest = pem.Decode(rest) {
		c.Certificate = append(c.Certificate, block.Bytes)
	}
	if len(c.Certificate) == 0 {
		return nil, errors.New("an answer without a certificate")
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err == nil && !bytes.Contains(c.Certificate[0], public) {
		err = errors.New("a certificate for another key")
	}
	return c, err
}
