package data

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

const (
	manifestName    = "manifest.json"
	manifestVersion = 1
	maxManifest     = 16 << 20
)

// manifest describes a prepared folder; a folder without one is not whole.
type manifest struct {
	Version    int         `json:"version"`
	Vocab      int         `json:"vocab"`
	EndOfText  int32       `json:"end_of_text"`
	Tokenizer  string      `json:"tokenizer"`
	Files      int         `json:"source_files"`
	Bytes      int64       `json:"source_bytes"`
	Skipped    Skipped     `json:"skipped"`
	Train      []shardInfo `json:"train"`
	Validation []shardInfo `json:"validation"`
}

// manifest describes what a pass wrote.
func (b *builder) manifest(e *encoding) manifest {
	return manifest{
		Version:    manifestVersion,
		Vocab:      b.tokenizer.VocabSize(),
		EndOfText:  b.endOfText,
		Tokenizer:  b.tokenizer.Hash(),
		Files:      len(b.source.files),
		Bytes:      int64(b.source.bytes),
		Skipped:    e.skipped,
		Train:      e.sets[0].written,
		Validation: e.sets[1].written,
	}
}

// writeManifest writes m durably into folder.
func writeManifest(d disk, folder string, m manifest) error {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetIndent("", "  ")
	if err := enc.Encode(m); err != nil {
		return err
	}
	return writeFile(d, filepath.Join(folder, manifestName), out.Bytes())
}

// writeFile writes a new file durably.
func writeFile(d disk, path string, content []byte) error {
	f, err := d.create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// readManifest reads and checks the manifest of a prepared folder.
func readManifest(folder string) (manifest, error) {
	path := filepath.Join(folder, manifestName)
	info, err := os.Stat(path)
	if err != nil {
		return manifest{}, fmt.Errorf("data: %w", err)
	}
	if info.Size() > maxManifest {
		return manifest{}, fmt.Errorf("data: %s: %w: a manifest of %d bytes", path, ErrShard, info.Size())
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return manifest{}, fmt.Errorf("data: %w", err)
	}
	m, err := decodeManifest(content)
	if err != nil {
		return manifest{}, fmt.Errorf("data: %s: %w: %w", path, ErrShard, err)
	}
	return m, nil
}

func decodeManifest(content []byte) (manifest, error) {
	dec := json.NewDecoder(bytes.NewReader(content))
	dec.DisallowUnknownFields()
	var m manifest
	if err := dec.Decode(&m); err != nil {
		return manifest{}, err
	}
	switch {
	case m.Version != manifestVersion:
		return manifest{}, fmt.Errorf("version %d; this carve reads %d", m.Version, manifestVersion)
	case m.Vocab < 1 || m.Vocab > maxVocab:
		return manifest{}, fmt.Errorf("vocabulary of %d", m.Vocab)
	case len(m.Train)+len(m.Validation) == 0:
		return manifest{}, errors.New("no shards")
	}
	for _, i := range slices.Concat(m.Train, m.Validation) {
		if i.File != filepath.Base(i.File) || filepath.Ext(i.File) != shardExt {
			return manifest{}, fmt.Errorf("shard name %.80q", i.File)
		}
	}
	return m, nil
}
