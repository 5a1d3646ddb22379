package fidelity

import (
	"fmt"

	"carve/cost"
	"carve/price"
)

// Book is the constants that runs are priced with.
type Book struct {
	Devices  []cost.Constants
	Profiles []price.Profile
}

// NewBook returns the constants that the program has.
func NewBook() (Book, error) {
	devices, err := cost.AllConstants()
	if err != nil {
		return Book{}, err
	}
	profiles, err := price.Profiles()
	return Book{devices, profiles}, err
}

// profile finds a profile by name.
func (b *Book) profile(name string) (*price.Profile, error) {
	for i := range b.Profiles {
		if b.Profiles[i].Name == name {
			return &b.Profiles[i], nil
		}
	}
	return nil, fmt.Errorf("fidelity: no profile %q", name)
}

// constants finds those of a kind.
func (b *Book) constants(kind string) *cost.Constants {
	for i := range b.Devices {
		if b.Devices[i].Kind == kind {
			return &b.Devices[i]
		}
	}
	return &b.Devices[len(b.Devices)-1]
}

// Ready is a run made ready to be priced with any book.
type Ready struct {
	Run     *Run
	job     price.Job
	machine cost.Machine
	profile string
	err     error // why it cannot be priced
}

// Prepare makes a run ready.
func Prepare(r *Run) Ready {
	p := Ready{Run: r, profile: r.Profile()}
	if p.job, p.err = r.Job(); p.err == nil {
		p.machine, p.err = r.Machine()
	}
	return p
}

// prices is the closed form with a book.
func (p *Ready) prices(b *Book) (t price.Time, m price.Memory, err error) {
	if p.err != nil {
		return t, m, p.err
	}
	f, err := b.profile(p.profile)
	if err != nil {
		return t, m, err
	}
	p.machine.Constants = *b.constants(p.machine.Constants.Kind)
	return price.Of(&p.job, &p.machine, f)
}
