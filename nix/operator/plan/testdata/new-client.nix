# A service signs people in and fetches a file that others have already; hosts poll less often.
{ base, merge, ... }: rec {
  before = merge base {
    providers = {
      file.hosts = [ "alpha" ];
      config.hosts = [ "alpha" ];
    };
    services.wiki.files.smtp.ref = "wiki/smtp-password";
  };
  after = merge before {
    services.auth = {
      user = "auth";
      files.mail = {
        ref = "wiki/smtp-password";
        mode = "0640";
      };
      sso = {
        mode = "oidc";
        redirectURIs = [ "https://auth.example.org/callback" ];
      };
    };
    services.wiki.user = "www";
    providers.config = {
      interval = 86400;
      staleAfter = 90000;
    };
  };
}
