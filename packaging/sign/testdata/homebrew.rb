# The part of Homebrew that the formula of tea uses:
#
#   ruby homebrew.rb FORMULA OS ARCH PREFIX FILES
#
# installs the formula for an operating system (macos, linux) and processor (intel, arm)
# into PREFIX. FILES has the archives; the address and checksum are printed.
require "digest"
require "fileutils"
require "pathname"

FORMULA, OS, ARCH, PREFIX, FILES = ARGV

class Pathname
  def install(paths)
    mkpath
    paths.each { |path| FileUtils.mv(path, self) }
  end

  def install_symlink(target)
    mkpath
    target = Array(target).to_h { |path| [path, path.basename] } unless target.is_a?(Hash)
    target.each { |from, name| (self/name).make_symlink(from) }
  end
end

class Formula
  class << self
    %i[desc homepage version license url sha256].each do |field|
      define_method(field) { |value = nil| value ? fields[field] = value : fields.fetch(field) }
    end
    %w[macos linux].each { |os| define_method("on_#{os}") { |&body| body.call if os == OS } }
    %w[intel arm].each { |arch| define_method("on_#{arch}") { |&body| body.call if arch == ARCH } }

    def fields = @fields ||= {}

    def depends_on(arch:)
      raise "#{arch} is needed" unless arch == :arm64 && ARCH == "arm"
    end

    def test(&body) = define_method(:test, &body)
  end

  attr_reader :testpath

  def initialize(testpath) = @testpath = Pathname(testpath)
  def version = self.class.version
  def libexec = Pathname(PREFIX)/"libexec"
  def bin = Pathname(PREFIX)/"bin"
  def man1 = Pathname(PREFIX)/"share/man/man1"
  def bash_completion = Pathname(PREFIX)/"etc/bash_completion.d"
  def zsh_completion = Pathname(PREFIX)/"share/zsh/site-functions"
  def fish_completion = Pathname(PREFIX)/"share/fish/vendor_completions.d"

  def shell_output(command)
    output = `#{command}`
    raise "#{command}: #{$?}" unless $?.success?
    output
  end

  def assert_match(pattern, text)
    raise "#{pattern} is not in #{text}" unless text.match?(pattern)
  end
end

load FORMULA
archive = File.join(FILES, File.basename(Tea.url))
raise "wrong checksum" unless Digest::SHA256.file(archive).hexdigest == Tea.sha256
unpacked = File.join(PREFIX, "unpacked")
FileUtils.mkdir_p(unpacked)
raise "tar" unless system("tar", "-C", unpacked, "--strip-components", "1", "-xzf", archive)
formula = Tea.new(unpacked)
Dir.chdir(unpacked) { formula.install }
Dir.chdir(unpacked) { formula.test }
puts Tea.url, Tea.sha256
