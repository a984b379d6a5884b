package handover

// Ends is what is to be done when something is over that the goroutine which began it does not
// wait for: what defer is for one that does.
type Ends struct {
	all  []func()
	kept bool
}

// Add has f called before those that were added earlier.
func (e *Ends) Add(f func()) { e.all = append(e.all, f) }

// Keep leaves the end to who calls Run later.
func (e *Ends) Keep() { e.kept = true }

// Go leaves it to a goroutine that ends when f returns.
func (e *Ends) Go(f func()) {
	e.Keep()
	go func() {
		defer e.Run()
		f()
	}()
}

// Close is Run, unless the end was left to somebody.
func (e *Ends) Close() {
	if !e.kept {
		e.Run()
	}
}

// Run calls all, the last one first.
func (e *Ends) Run() {
	for i := len(e.all) - 1; i >= 0; i-- {
		e.all[i]()
	}
}
