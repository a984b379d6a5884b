# The same people may reach, fetch and sign in, but the targets change.
{ base, merge, ... }: rec {
  before = merge base {
    providers.file.hosts = [ "alpha" ];
    services.wiki.files.smtp.ref = "wiki/smtp-password";
  };
  after = merge before {
    services.wiki = {
      upstream = "unix:/run/docker.sock";
      port = null;
      listenPort = 8080;
      files.smtp = {
        ref = "root/backup-key";
        mode = "0444";
        restart = "sshd.service";
      };
      sso.redirectURIs = [
        "https://evil.example/callback"
        "https://wiki.example.org/callback"
      ];
    };
    providers.oidc.issuer = "https://login.evil.example";
    providers.cert.lifetime = 7776000;
  };
}
