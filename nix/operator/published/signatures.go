package published

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/unixtime"
)

// signaturesSchema is the value of the field schema in a signature file.
const signaturesSchema = "florete.signatures/v1"

// These are the operations for which several operators can sign, as a signature file names them.
const (
	actPublish  = "publication"
	actRollback = "rollback"
	actRevoke   = "revocation list"
	actAdmit    = "admission"
)

// maxSignatures is the maximum size of a signature file in bytes.
const maxSignatures = 64 << 20

// longestRound is the longest time between the signatures of the first and the last operator.
const longestRound = 7 * 24 * time.Hour

// signatures is the content of a signature file, with which operators sign the same texts one after
// the other. The file contains the digest of each text but not the text. Every operator makes the
// texts from their own checkout, so nobody signs a text that somebody else made.
type signatures struct {
	Schema  string        `json:"schema"`
	Cluster string        `json:"cluster"`
	Act     string        `json:"act"`    // act for which operators sign, such as actPublish
	Serial  int64         `json:"serial"` // serial of the version, or number of the list; zero for other acts
	Time    unixtime.Time `json:"time"`   // time at which the first operator signed, which the texts contain
	Texts   []signedText  `json:"texts"`

	file string // path of the file
}

// signedText is an entry of a signature file: the digest of one text and its signatures.
type signedText struct {
	What       string `json:"what"`       // description of the text, for people
	Digest     string `json:"digest"`     // document.Digest of the text
	Signatures string `json:"signatures"` // signatures, separated by spaces
}

// readSignatures reads a signature file that another operator wrote.
func readSignatures(file string) (s signatures, err error) {
	f, err := os.Open(file)
	if err != nil {
		return s, fmt.Errorf("--with: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSignatures))
	if err == nil {
		err = strictjson.Decode(b, &s)
	}
	if err == nil && s.Schema != signaturesSchema {
		err = fmt.Errorf("schema %.64q, want %q", s.Schema, signaturesSchema)
	}
	if err != nil {
		return s, fmt.Errorf("--with %s: %w: want what --sign-only of the same florctl command wrote", file, err)
	}
	s.file = file
	return s, nil
}

// round is one operation for which several operators sign. It collects the signatures of this
// operator and of the operators who signed before.
type round struct {
	key        Key
	by         signers.Set // keys that must sign
	at         time.Time   // time that the texts contain
	signatures             // content of the signature file that this operator writes
}

// begin returns a new round in which this key signs an act of a cluster. The argument by contains
// the keys that must sign. If other operators signed before, begin checks that their signature
// files are for the same act, and takes the time and the serial from them.
func (k Key) begin(cluster, act string, by signers.Set) (*round, error) {
	r := &round{key: k, by: by, at: time.Now(), signatures: signatures{Schema: signaturesSchema, Cluster: cluster, Act: act}}
	for i, s := range k.others {
		if s.Cluster != cluster || s.Act != act {
			return nil, fmt.Errorf("--with %s: signs a %.64s of cluster %.64q, want a %s of %q", s.file, s.Act, s.Cluster, act, cluster)
		}
		if s.Time != k.others[0].Time || s.Serial != k.others[0].Serial {
			return nil, fmt.Errorf("--with %s: begun at %s for serial %d, but %s at %s for serial %d: let the second operator pass the file of the first with --with",
				s.file, s.Time.UTC().Format(time.RFC3339), s.Serial, k.others[0].file, k.others[0].Time.UTC().Format(time.RFC3339), k.others[0].Serial)
		}
		if i > 0 {
			continue
		}
		if age := r.at.Sub(s.Time.Time); age > longestRound || age < -10*time.Minute {
			return nil, fmt.Errorf("--with %s: signed at %s, want at most %s ago: sign again", s.file, s.Time.UTC().Format(time.RFC3339), longestRound)
		}
		r.at, r.Serial = s.Time.Time, s.Serial
	}
	r.Time = unixtime.Of(r.at)
	r.at = r.Time.Time
	return r, nil
}

// sign signs a text and returns the signatures of all operators who signed it. The argument what
// describes the text in errors. sign returns an error if another operator signed a different text.
// It also returns an error if too few operators signed, unless this key only signs for another
// operator.
func (r *round) sign(what, text string) (string, error) {
	digest := document.Digest([]byte(text))
	sig, err := r.key.Sign(nil, text)
	if err != nil {
		return "", err
	}
	if err := signers.Any(r.key.ToPublicKey().String()).Verify(what, text, sig.String()); err != nil {
		return "", err
	}
	all := sig.String()
	for _, s := range r.key.others {
		i := slices.IndexFunc(s.Texts, func(t signedText) bool { return t.Digest == digest })
		if i < 0 {
			return "", fmt.Errorf("--with %s: does not sign this %s, %s%s: nothing is signed. Both operators need the same commit, flags and published version", s.file, what, digest, s.instead(what))
		}
		if err := signers.Any(r.by.Keys...).Verify(what, text, s.Texts[i].Signatures); err != nil {
			return "", fmt.Errorf("--with %s: %w: want a signature by one of trust.signingKeys", s.file, err)
		}
		all = signers.Join(all, s.Texts[i].Signatures)
	}
	r.Texts = append(r.Texts, signedText{what, digest, all})
	if r.key.only == "" {
		if err := r.by.Verify(what, text, all); err != nil {
			return "", err
		}
	}
	return all, nil
}

// instead returns the description of the text that the signature file contains in place of the
// expected text. It is used in errors. The argument what describes the expected text. The result is
// "" if there is no such text.
func (s signatures) instead(what string) string {
	for _, t := range s.Texts {
		if t.What == what {
			return ", but " + t.Digest
		}
	}
	if s.Serial != 0 {
		return fmt.Sprintf(", but serial %d", s.Serial)
	}
	return ""
}

// ErrSignedOnly is the error of an operation that was run with --sign-only. The signature file has
// been written, and the operation was not carried out.
var ErrSignedOnly = errors.New("signed only")

// write writes the signature file and returns ErrSignedOnly if this key only signs. Otherwise it
// does nothing. The argument describe is a description of the operation for the operator.
func (r *round) write(out io.Writer, describe string) error {
	if r.key.only == "" {
		return nil
	}
	b, err := json.MarshalIndent(r.signatures, "", "  ")
	if err == nil {
		err = atomicfile.File(r.key.only, append(b, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("--sign-only: %w", err)
	}
	fmt.Fprintf(out, "%s: %s, signed by %s: another operator passes it with --with to the same command, which needs the signatures of %d keys\n",
		r.key.only, describe, signers.Names(r.Texts[0].Signatures), r.by.Need())
	return ErrSignedOnly
}
