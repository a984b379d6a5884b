package main

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/providers/cert"
	"github.com/florete/florete/tests/kit"
)

// issue measures how fast the provider issues certificates. First, callers request certificates
// over connections that they keep. The state and the audit row are on disk before each answer. The
// time of the cryptography alone is measured for comparison. Then all hosts contact the provider at
// the same time.
func issue(f figures) error {
	err := with(shape{hosts: max(1, *workers), services: 1, engine: engineSQLite}, func(c cluster, p *process) error { return issued(f, c, p) })
	if err != nil || *hosts == 0 {
		return err
	}
	return with(shape{hosts: *hosts, services: 4, engine: engineSQLite}, func(c cluster, p *process) error {
		return cold(f, "storm_%s", c, p, c.storm)
	})
}

func issued(f figures, c cluster, p *process) error {
	debug.SetGCPercent(quickGC)
	callers, err := c.callers()
	if err != nil {
		return err
	}
	raw, err := c.raw(callers[0].requests[0])
	if err != nil {
		return err
	}
	f.note("raw_1core_per_s", "/s", raw)
	profiled, err := profile()
	if err != nil {
		return err
	}
	defer profiled("callers")
	for _, n := range []int{1, *workers} {
		providerUse, hostsUse, began := p.used(), ownUse(), time.Now()
		took, err := durable(callers[:n])
		if err != nil {
			return err
		}
		lasted, used, own := time.Since(began).Seconds(), (p.used() - providerUse).Seconds(), (ownUse() - hostsUse).Seconds()
		rate := float64(len(took)) / lasted
		slices.Sort(took)
		note := func(key, unit string, v float64) { f.note(fmt.Sprintf("durable_%dw_%s", n, key), unit, v) }
		note("per_s", "/s", rate)
		note("ratio", "of raw", rate/raw)
		note("p50_ms", "ms", 1e3*took[len(took)/2].Seconds())
		note("p99_ms", "ms", 1e3*took[len(took)*99/100].Seconds())
		note("cpu_ms", "ms of the provider, each", 1e3*used/float64(len(took)))
		note("hosts_cpu_ms", "ms of the hosts, each", 1e3*own/float64(len(took)))
		note("cores", "that both had", (used+own)/lasted)
	}
	return nil
}

// caller is an enrolled node with several prepared requests. It sends the requests in turn. Two
// successive requests differ, so that each gets its own certificate.
type caller struct {
	client   *hostapi.Client
	requests []hostapi.Request
}

const ready = 8

func (c cluster) callers() (all []caller, err error) {
	for _, n := range c.nodes {
		client, err := c.enrol(n, nil)
		if err != nil {
			return nil, err
		}
		one := caller{client: client}
		for range ready {
			one.requests = append(one.requests, c.request(n.services[0], n.needs[1], kit.NewKey()))
		}
		all = append(all, one)
	}
	return all, nil
}

// request returns the request for the certificate of a need.
func (c cluster) request(id spiffe.ID, need document.Need, key crypto.Signer) hostapi.Request {
	return hostapi.Request{Need: need.ID, Serial: c.serial(-1), Generation: 1, Body: kit.JSON(hostapi.CertBody{ID: id, CSR: kit.CSR(id, key)})}
}

// raw measures how many certificates one processor core makes per second with crypto/x509 alone.
// For each certificate it parses a request, checks its signature and signs the certificate.
func (c cluster) raw(r hostapi.Request) (float64, error) {
	var body hostapi.CertBody
	if err := strictjson.Decode(r.Body, &body); err != nil {
		return 0, err
	}
	u, err := url.Parse(body.ID.String())
	if err != nil {
		return 0, err
	}
	block, _ := pem.Decode([]byte(body.CSR))
	t := &x509.Certificate{URIs: []*url.URL{u}, NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true}
	n, began := 0, time.Now()
	for ; time.Since(began) < *lasting; n++ {
		csr, err := x509.ParseCertificateRequest(block.Bytes)
		if err == nil {
			err = csr.CheckSignature()
		}
		if err == nil {
			_, err = x509.CreateCertificate(rand.Reader, t, c.ca.Issuing.Certificate, csr.PublicKey, c.ca.Issuing.Key)
		}
		if err != nil {
			return 0, err
		}
	}
	return float64(n) / time.Since(began).Seconds(), nil
}

// durable makes the callers request certificates, each caller one after the other. It returns the
// time of each request.
func durable(callers []caller) ([]time.Duration, error) {
	var all sync.WaitGroup
	took, errs := make([][]time.Duration, len(callers)), make([]error, len(callers))
	end := time.Now().Add(*lasting)
	for i, c := range callers {
		all.Go(func() {
			pass := c.client.Calls()
			defer pass.Close()
			for k := 0; errs[i] == nil && time.Now().Before(end); k++ {
				began := time.Now()
				_, errs[i] = pass.Do(context.Background(), hostapi.Path(cert.Name), c.requests[k%ready])
				took[i] = append(took[i], time.Since(began))
			}
		})
	}
	all.Wait()
	return slices.Concat(took...), errors.Join(errs...)
}
