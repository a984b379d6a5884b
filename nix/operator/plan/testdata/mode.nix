# A file that was its service's alone is everyone's, in place.
{ base, merge, ... }: rec {
  before = merge base {
    providers.file.hosts = [ "alpha" ];
    services.wiki.files.smtp.ref = "wiki/smtp-password";
  };
  after = merge before { services.wiki.files.smtp.mode = "0444"; };
}
