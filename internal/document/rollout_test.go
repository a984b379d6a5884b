package document

import (
	"testing"
	"time"
)

func TestWindow(t *testing.T) {
	late := MaintenanceWindow{Days: []string{"sat", "sun"}, Start: "23:30", Minutes: 60} // 2026-07-18 is a Saturday
	for at, open := range map[string]bool{
		"2026-07-18T23:29:59Z":      false,
		"2026-07-18T23:30:00Z":      true,
		"2026-07-19T00:29:59Z":      true, // of Saturday
		"2026-07-19T00:30:00Z":      false,
		"2026-07-19T23:45:00Z":      true,
		"2026-07-20T00:15:00Z":      true, // of Sunday
		"2026-07-20T23:45:00Z":      false,
		"2026-07-18T00:15:00Z":      false, // Friday has no window
		"2026-07-19T02:00:00+02:00": true,
	} {
		now, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if late.Open(now) != open {
			t.Errorf("at %s: open is %v", at, !open)
		}
	}
	if (MaintenanceWindow{Days: weekdays, Start: "25:00", Minutes: 60}).Open(time.Now()) {
		t.Error("a window without a time of day is open")
	}
}
