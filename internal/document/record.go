package document

import (
	"fmt"
	"regexp"
)

// Record makes a host record the SSH sessions at a service. A recording is encrypted while it is
// made, and the host itself cannot read it.
type Record struct {
	// Recipients lists the age public keys (age1…) whose owners can read the recordings.
	Recipients []string `json:"recipients"` // sorted
	// Days is the number of days for which the host keeps a recording.
	Days int `json:"days"`
}

// maxRecordDays is the maximum of Days: ten years.
const maxRecordDays = 3650

// recipient matches an age public key of type X25519.
var recipient = regexp.MustCompile(`^age1[02-9ac-hj-np-z]{58}$`)

func (r *Record) check(remote Remote) error {
	switch {
	case r == nil:
		return nil
	case remote != RemoteSSH:
		return fmt.Errorf("record of a service with sessions over %q, want %q", string(remote), RemoteSSH)
	case len(r.Recipients) == 0:
		return fmt.Errorf("record without recipients, want an age public key")
	case r.Days < 1 || r.Days > maxRecordDays:
		return fmt.Errorf("record for %d days, want 1 to %d", r.Days, maxRecordDays)
	}
	for i, key := range r.Recipients {
		switch {
		case !recipient.MatchString(key):
			return fmt.Errorf("record for recipient %q, want an age public key", key)
		case i > 0 && key <= r.Recipients[i-1]:
			return fmt.Errorf("record for recipient %q: given twice, or not sorted", key)
		}
	}
	return nil
}
