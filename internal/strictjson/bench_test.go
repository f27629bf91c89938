package strictjson

import (
	"fmt"
	"testing"
)

// benchBody is an envelope of about the given size, alike to real calls: some
// turns, short argument names, text and numbers.
func benchBody(size int) []byte {
	b := []byte(`{"uid":"0190","tool":"db.query","dryRun":false,"turns":[{"role":"user","text":"please look up the order"}],"arguments":{`)
	for i := 0; len(b) < size-90; i++ {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `"key%d":{"name":"some plain text, \"quoted\"","n":%d,"price":%d.99,"ok":true,"tags":["a","é"]}`, i, i, i)
	}
	return append(b, "}}"...)
}

var benchSizes = map[string]int{"1KB": 1 << 10, "64KiB": 64 << 10}

func benchmark(b *testing.B, run func(body []byte, tree any) error) {
	for name, size := range benchSizes {
		b.Run(name, func(b *testing.B) {
			body := benchBody(size)
			tree, err := Parse(body, Limits{})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := run(body, tree); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	benchmark(b, func(body []byte, _ any) error {
		_, err := Parse(body, Limits{})
		return err
	})
}

func BenchmarkDecode(b *testing.B) {
	benchmark(b, func(body []byte, _ any) error {
		var e envelope
		return Decode(body, Limits{}, &e)
	})
}

func BenchmarkAppendCanonical(b *testing.B) {
	var buf []byte
	benchmark(b, func(_ []byte, tree any) (err error) {
		buf, err = AppendCanonical(buf[:0], tree)
		return err
	})
}

func BenchmarkDigest(b *testing.B) {
	benchmark(b, func(_ []byte, tree any) error {
		_, err := Digest(tree)
		return err
	})
}

func BenchmarkParseParallel(b *testing.B) {
	body := benchBody(benchSizes["1KB"])
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := Parse(body, Limits{}); err != nil {
				b.Error(err)
			}
		}
	})
}
