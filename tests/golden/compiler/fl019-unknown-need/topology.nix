{ base, merge, ... }: merge base {
  providers.config.hosts = [ "alpha" ];
  services.wiki.files.smtp = { ref = "wiki/smtp"; after = [ "config-wiki-smpt" ]; };
}
