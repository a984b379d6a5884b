package trust

import (
	"crypto/x509"
	"encoding/hex"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/unixtime"
)

// Issued is a provider's record of an SVID that it has issued. The provider keeps it until the SVID
// expires.
type Issued struct {
	Serial string        `json:"serial"`
	ID     spiffe.ID     `json:"id"`
	Node   string        `json:"node,omitempty"`   // node to which the SVID was issued
	Device string        `json:"device,omitempty"` // fingerprint of the device key with which the node joined, if any
	At     unixtime.Time `json:"at"`
	Until  unixtime.Time `json:"until"`
	Issuer string        `json:"issuer"` // key identifier of the issuing CA in hex
}

// IssuedOf returns the record of an issued SVID with the given leaf certificate and SPIFFE ID.
func IssuedOf(leaf *x509.Certificate, id spiffe.ID) Issued {
	return Issued{
		Serial: SerialNumber(leaf), ID: id, Node: GivenTo(leaf), Device: GivenToDevice(leaf),
		At: unixtime.Of(leaf.NotBefore.Add(Backdated)), Until: unixtime.Of(leaf.NotAfter), Issuer: hex.EncodeToString(leaf.AuthorityKeyId),
	}
}

// CheckLeaf returns a *RevokedError if the list revokes an SVID that a provider has issued. It does
// not check the certificates of the issuing CAs.
func (r *Revocations) CheckLeaf(c Issued) error {
	if r == nil {
		return nil
	}
	if r.keys[c.Device] {
		return &RevokedError{What: "device key " + c.Device + ", to which " + c.ID.Short() + " was issued,", Number: r.Number}
	}
	if err := r.checkSerial(c.Serial, c.ID); err != nil {
		return err
	}
	return r.CheckIssued(c.ID, c.Node, c.At.Time)
}

func (r *Revocations) checkSerial(serial string, id spiffe.ID) error {
	if !r.certs[serial] {
		return nil
	}
	return &RevokedError{What: "certificate " + serial + " of " + id.Short(), Number: r.Number}
}
