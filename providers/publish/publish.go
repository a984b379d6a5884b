// Package publish signs a cluster's documents and puts them where a config
// provider serves them from.
package publish

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"

	"github.com/florete/florete"
)

// ahead is how far a serial, the time of a commit, may be ahead of the clock.
// Hosts that took a serial of the far future would take no other until then.
const ahead = 10 * time.Minute

// Tree is the signed documents of each host, all of one serial.
type Tree map[string][]florete.Document

// Sign signs the documents of a committed cluster.
func Sign(hosts map[string][]florete.Document, key signature.SecretKey, now time.Time) (Tree, error) {
	tree := Tree{}
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		for _, d := range hosts[host] {
			if err := publishable(d.Envelope, now); err != nil {
				return nil, err
			}
			envelope, body, _ := d.Bytes()
			sig, err := key.Sign(nil, florete.SignedText(envelope))
			if err != nil {
				return nil, err
			}
			signed, err := florete.Open(envelope, body, sig.String())
			if err != nil {
				return nil, err
			}
			if err := signed.Verify([]string{key.ToPublicKey().String()}); err != nil {
				return nil, err
			}
			tree[host] = append(tree[host], signed)
		}
	}
	return tree, nil
}

// RejectUnpinned refuses a key that a host's manifest does not have among its trust.signingKeys: the
// host would refuse the documents. While keys change over, both are there.
func RejectUnpinned(hosts map[string][]florete.Document, key signature.PublicKey) error {
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		for _, d := range hosts[host] {
			if d.Envelope.Kind != florete.DocManifest {
				continue
			}
			m := d.Manifest()
			if !slices.Contains(m.Trust.SigningKeys, key.String()) {
				return fmt.Errorf("key %s: not among trust.signingKeys, so host %s would refuse what it signs, want one of %s: "+
					"add the key there, and publish that signed by one of those", key, host, strings.Join(m.Trust.SigningKeys, ", "))
			}
		}
	}
	return nil
}

func publishable(e florete.Envelope, now time.Time) error {
	at := time.Unix(e.Serial, 0)
	if at.After(now.Add(ahead)) {
		return fmt.Errorf("serial %d is %s, more than %s ahead of the clock, %s: set the clock, and commit anew if the commit has the wrong time",
			e.Serial, at.UTC().Format(time.RFC3339), ahead, now.UTC().Format(time.RFC3339))
	}
	return nil
}

// Serial is the tree's serial.
func (t Tree) Serial() int64 {
	for _, documents := range t {
		for _, d := range documents {
			return d.Envelope.Serial
		}
	}
	return 0
}
