// Package signers verifies texts that the operators of a cluster sign: documents, revocation lists,
// admissions and join grants. Every program that accepts such a text uses this package.
package signers

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"

	"github.com/florete/florete/internal/pubkey"
)

// Most is the largest threshold, and the largest number of signatures of one text.
const Most = 16

// Set contains public keys, in Nix format ("name:base64"), and the number of them that must sign a
// text. A Threshold of zero stands for one.
type Set struct {
	Keys      []string
	Threshold int
}

// Any returns the Set in which one signature by any of the keys is enough.
func Any(keys ...string) Set { return Set{Keys: keys} }

// Need returns the number of different keys that must sign a text.
func (s Set) Need() int { return max(1, s.Threshold) }

// Join returns several signatures of the same text as one value, sorted. It leaves out repeated
// ones. A single signature is returned as it is.
func Join(signatures ...string) string {
	var all []string
	for _, s := range signatures {
		for one := range strings.FieldsSeq(s) {
			if !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// Names returns the names of the keys that claim to have signed, without verifying anything.
func Names(signatures string) string {
	var all []string
	for one := range strings.FieldsSeq(signatures) {
		name, _, _ := strings.Cut(one, ":")
		all = append(all, name)
	}
	return strings.Join(all, ", ")
}

// MissingError is the error for a text with valid signatures by too few keys.
type MissingError struct {
	What    string
	Signed  []string // names of the keys that signed
	Others  []string // names of the keys that did not
	Need    int
	ignored error // a pinned key that is no key
}

func (e *MissingError) Error() string {
	text := fmt.Sprintf("%s: signed by %d of the %d keys that trust.threshold demands (%s), want %d more of %s: "+
		"another operator runs the same florctl command with --sign-only FILE, and you then pass --with FILE",
		e.What, len(e.Signed), e.Need, strings.Join(e.Signed, ", "), e.Need-len(e.Signed), strings.Join(e.Others, ", "))
	if e.ignored != nil {
		text += "; " + e.ignored.Error()
	}
	return text
}

// Verify checks that text is signed by as many different keys of the set as it demands. The
// signatures are separated by spaces. Several signatures by one key count once, and so do several
// names of one key. Verify ignores weak keys, for which anybody can create a signature, and
// signatures by other keys. The argument what describes the text at the beginning of errors.
func (s Set) Verify(what, text, signatures string) error {
	given := strings.Fields(signatures)
	switch {
	case len(given) == 0:
		return fmt.Errorf("%s: not signed", what)
	case len(given) > Most:
		return fmt.Errorf("%s: %d signatures, want at most %d", what, len(given), Most)
	}
	parsed := make([]signature.Signature, 0, len(given))
	for _, one := range given {
		sig, err := signature.ParseSignature(one)
		if err != nil {
			return fmt.Errorf("%s: signature: %w", what, err)
		}
		parsed = append(parsed, sig)
	}
	missing := &MissingError{What: what, Need: s.Need()}
	seen := map[string]bool{}
	for _, k := range s.Keys {
		pin, err := signature.ParsePublicKey(k)
		if err != nil {
			return fmt.Errorf("pinned key %q: %w", k, err)
		}
		if err := pubkey.CheckEd25519(pin.Data); err != nil {
			missing.ignored = fmt.Errorf("%q is no key: %w", k, err)
			continue
		}
		if seen[string(pin.Data)] {
			continue
		}
		seen[string(pin.Data)] = true
		// Try every signature whatever its name: while keys rotate, two pins may have the same name.
		if !slices.ContainsFunc(parsed, func(sig signature.Signature) bool { return pin.Verify(text, sig) }) {
			missing.Others = append(missing.Others, pin.Name)
			continue
		}
		if missing.Signed = append(missing.Signed, pin.Name); len(missing.Signed) == missing.Need {
			return nil
		}
	}
	switch {
	case len(missing.Signed) > 0:
		return missing
	case missing.ignored != nil:
		return fmt.Errorf("%s: signature by %q does not verify with any other pinned key, and %w", what, Names(signatures), missing.ignored)
	}
	return fmt.Errorf("%s: signature by %q does not verify with any pinned key", what, Names(signatures))
}

// Check returns an error if no text can be signed by as many different keys as the set demands.
func (s Set) Check() error {
	distinct := map[string]bool{}
	for _, k := range s.Keys {
		pin, err := signature.ParsePublicKey(k)
		if err != nil {
			return fmt.Errorf("trust key %q: %w", k, err)
		}
		if pubkey.CheckEd25519(pin.Data) != nil {
			continue
		}
		distinct[string(pin.Data)] = true
	}
	switch {
	case s.Threshold < 0 || s.Threshold > Most:
		return fmt.Errorf("trust threshold %d, want 1 to %d", s.Threshold, Most)
	case s.Threshold > len(distinct):
		return fmt.Errorf("trust threshold %d with %d different keys: nobody could sign a document", s.Threshold, len(distinct))
	}
	return nil
}

// VerifyAny checks that at least one of the sets accepts the signatures of text.
func VerifyAny(what, text, signatures string, sets ...Set) error {
	var errs []error
	for _, s := range sets {
		err := s.Verify(what, text, signatures)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		return errors.New(what + ": no keys are pinned")
	}
	return errs[0]
}
