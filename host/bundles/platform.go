package bundles

import (
	"bytes"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"fmt"
	"os"
	"syscall"
)

// PlatformOf returns the platform for which a binary was built, from its
// header, in Go's terms: "linux/arm64". A script is for [AnyPlatform].
func PlatformOf(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would block
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, 4)
	if _, err := f.ReadAt(head, 0); err != nil {
		return "", fmt.Errorf("%s is not a binary or a script: %w", path, err)
	}
	var platform string
	switch {
	case bytes.HasPrefix(head, []byte("#!")):
		return AnyPlatform, nil
	case string(head) == elf.ELFMAG:
		platform, err = elfPlatform(f)
	case bytes.HasPrefix(head, []byte("MZ")):
		platform, err = windowsPlatform(f)
	default:
		platform, err = darwinPlatform(f)
	}
	if err != nil {
		return "", fmt.Errorf("%s is not a binary for a known platform, and not a script that begins with #!: %w", path, err)
	}
	return platform, nil
}

func elfPlatform(f *os.File) (string, error) {
	e, err := elf.NewFile(f)
	if err != nil {
		return "", err
	}
	system := map[elf.OSABI]string{elf.ELFOSABI_FREEBSD: "freebsd", elf.ELFOSABI_NETBSD: "netbsd", elf.ELFOSABI_OPENBSD: "openbsd"}[e.OSABI]
	if system == "" {
		system = "linux"
	}
	little := e.Data == elf.ELFDATA2LSB
	switch {
	case e.Machine == elf.EM_X86_64:
		return system + "/amd64", nil
	case e.Machine == elf.EM_386:
		return system + "/386", nil
	case e.Machine == elf.EM_AARCH64 && little:
		return system + "/arm64", nil
	case e.Machine == elf.EM_ARM && little:
		return system + "/arm", nil
	case e.Machine == elf.EM_RISCV && e.Class == elf.ELFCLASS64:
		return system + "/riscv64", nil
	case e.Machine == elf.EM_PPC64 && little:
		return system + "/ppc64le", nil
	case e.Machine == elf.EM_LOONGARCH:
		return system + "/loong64", nil
	case e.Machine == elf.EM_S390:
		return system + "/s390x", nil
	}
	return "", fmt.Errorf("unknown machine %s", e.Machine)
}

func windowsPlatform(f *os.File) (string, error) {
	p, err := pe.NewFile(f)
	if err != nil {
		return "", err
	}
	switch p.Machine {
	case pe.IMAGE_FILE_MACHINE_AMD64:
		return "windows/amd64", nil
	case pe.IMAGE_FILE_MACHINE_ARM64:
		return "windows/arm64", nil
	case pe.IMAGE_FILE_MACHINE_I386:
		return "windows/386", nil
	}
	return "", fmt.Errorf("unknown machine %#x", p.Machine)
}

func darwinPlatform(f *os.File) (string, error) {
	m, err := macho.NewFile(f)
	if err != nil {
		return "", err
	}
	switch m.Cpu {
	case macho.CpuAmd64:
		return "darwin/amd64", nil
	case macho.CpuArm64:
		return "darwin/arm64", nil
	}
	return "", fmt.Errorf("unknown machine %s", m.Cpu)
}
