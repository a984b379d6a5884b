// Package crl keeps the certificate revocation lists (RFC 5280) of issuing CAs, for software on
// a host that is not ours.
package crl

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/trust"
)

// Add is the lists that a host has, once a provider returned its newest. One that has a lower
// number than the one before, or that no issuing CA of the trust domain signed, is refused.
func Add(lists []*x509.RevocationList, answer hostapi.CRL, roots *trust.Roots, now time.Time) ([]*x509.RevocationList, error) {
	is, err := open(answer, roots, now)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(lists, func(l *x509.RevocationList) bool { return bytes.Equal(l.AuthorityKeyId, is.AuthorityKeyId) })
	switch {
	case i < 0:
		lists = append(lists, is)
	case is.Number.Cmp(lists[i].Number) < 0 && now.Before(lists[i].NextUpdate):
		return nil, fmt.Errorf("CRL: of number %x, it had %x before", is.Number, lists[i].Number)
	default:
		lists[i] = is
	}
	// Whatever a CA issued that signs no more has ended by then.
	lists = slices.DeleteFunc(lists, func(l *x509.RevocationList) bool { return now.After(l.NextUpdate.Add(trust.MaxLifetime)) })
	slices.SortFunc(lists, func(a, b *x509.RevocationList) int { return bytes.Compare(a.AuthorityKeyId, b.AuthorityKeyId) })
	return lists, nil
}

func open(answer hostapi.CRL, roots *trust.Roots, now time.Time) (*x509.RevocationList, error) {
	block, _ := pem.Decode([]byte(answer.Issuer))
	if block == nil {
		return nil, errors.New("CRL: comes without the certificate of its issuer")
	}
	issuer, err := x509.ParseCertificate(block.Bytes)
	if err == nil {
		err = roots.CheckIssuing(issuer, now)
	}
	var lists []*x509.RevocationList
	if err == nil {
		lists, err = trust.ParseCRLs([]byte(answer.CRL))
	}
	if err == nil && len(lists) != 1 {
		err = fmt.Errorf("%d lists, want one", len(lists))
	}
	if err == nil {
		err = lists[0].CheckSignatureFrom(issuer)
	}
	if err == nil && (lists[0].Number == nil || !bytes.Equal(lists[0].AuthorityKeyId, issuer.SubjectKeyId)) {
		err = errors.New("without number or authority key identifier")
	}
	if err != nil {
		return nil, fmt.Errorf("CRL: %w", err)
	}
	return lists[0], nil
}
