# Python's smtplib sends $FILE.
import os, smtplib, ssl, sys

e = os.environ
context = ssl.create_default_context(cafile=e["CA"])
try:
    if e["TLS"] == "implicit":
        s = smtplib.SMTP_SSL("127.0.0.1", int(e["PORT"]), "client.test", timeout=60, context=context)
    else:
        s = smtplib.SMTP("127.0.0.1", int(e["PORT"]), "client.test", timeout=60)
    if e["TLS"] == "starttls":
        s.starttls(context=context)
    if e["AUTH_USER"]:
        s.login(e["AUTH_USER"], e["AUTH_PASSWORD"])
    with open(e["FILE"], "rb") as f:
        s.sendmail(e["FROM"], [e["TO"]], f.read())
    s.quit()
except smtplib.SMTPException as error:
    sys.exit(str(error))
