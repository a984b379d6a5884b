# Outline needs a password from a file at the provider, and shares a generated secret.
base: generation: {
  providers = base.providers // {
    file.hosts = [ "drhorrible" ];
    secret.hosts = [ "drhorrible" ];
    mailbox = {
      hosts = [ "drhorrible" ];
      port = 4650;
      run = "/usr/local/lib/florete/mailbox";
      request.address.pattern = "*@example.org";
      answer.password = { };
    };
  };
  secrets.session = {
    generate = "password";
    readers = [
      { service = "outline"; }
      {
        host = "mgmt01";
        overlap = true;
      }
    ];
  };
  services = base.services // {
    outline = base.services.outline // {
      needs.mail = {
        kind = "mailbox";
        request.address = "outline@example.org";
      };
      files.smtp-password = {
        inherit generation;
        ref = "outline/smtp-password";
        mode = "0440";
        restart = "outline.service";
      };
    };
  };
}
