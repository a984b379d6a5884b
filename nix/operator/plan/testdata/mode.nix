# A file becomes readable by every account, without a new generation.
{ base, merge, ... }: rec {
  before = merge base {
    providers.file.hosts = [ "alpha" ];
    services.wiki.files.smtp.ref = "wiki/smtp-password";
  };
  after = merge before { services.wiki.files.smtp.mode = "0444"; };
}
