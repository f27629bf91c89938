package main

import (
	"cmp"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// maxPicture is what a repository bears without complaint.
const maxPicture = 300 << 10

// screenshot has chromium draw the page, and keeps the picture with few colours.
func (c *config) screenshot(ctx context.Context, height int) error {
	if err := os.MkdirAll(filepath.Dir(c.picture), 0o750); err != nil {
		return err
	}
	page, err := filepath.Abs(c.page())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	shot := filepath.Join(c.work, "dashboard.png")
	args := []string{
		"--headless", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--user-data-dir=" + filepath.Join(c.work, "chromium"),
		fmt.Sprintf("--window-size=%d,%d", pageWidth, height), "--screenshot=" + shot, "file://" + page,
	}
	if os.Geteuid() == 0 {
		args = append([]string{"--no-sandbox"}, args...) // its sandbox refuses root; the page is our own
	}
	if out, err := exec.CommandContext(ctx, "chromium", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("chromium: %w: %s", err, out)
	}
	if err := shrink(shot, c.picture); err != nil {
		return err
	}
	info, err := os.Stat(c.picture)
	if err != nil {
		return err
	}
	fmt.Printf("%s, %d KiB\n", c.picture, info.Size()>>10)
	if info.Size() > maxPicture {
		return fmt.Errorf("%s has %d bytes, more than %d", c.picture, info.Size(), maxPicture)
	}
	return nil
}

// shrink writes a picture again with the paletteSize colours that it has most of, in place of each other one the nearest.
func shrink(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // read only
	full, err := png.Decode(in)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // closed below; this is for when writing fails
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(out, reduce(full)); err != nil {
		return err
	}
	return out.Close()
}

// paletteSize is 64: a page of lines and text has few colours, and the shades at their edges need not be exact.
const paletteSize = 64

func reduce(full image.Image) *image.Paletted {
	counts := map[color.Color]int{}
	b := full.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			counts[full.At(x, y)]++
		}
	}
	most := slices.SortedFunc(maps.Keys(counts), func(p, q color.Color) int { return cmp.Compare(counts[q], counts[p]) })
	palette := color.Palette(most[:min(paletteSize, len(most))])
	index := map[color.Color]uint8{}
	for _, c := range most {
		index[c] = uint8(palette.Index(c))
	}
	out := image.NewPaletted(b, palette)
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			out.SetColorIndex(x, y, index[full.At(x, y)])
		}
	}
	return out
}
