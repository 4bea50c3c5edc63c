// Nodemailer sends the text of $BODY, by SMTP or, with $SENDMAIL, by sendmail(1).
const e = process.env, fs = require('fs'), mailer = require(e.NODEMAILER);
const transport = mailer.createTransport(e.SENDMAIL ? { sendmail: true, path: e.SENDMAIL, newline: 'unix' } : {
    host: '127.0.0.1', port: +e.PORT, name: 'client.test', secure: e.TLS == 'implicit', requireTLS: e.TLS == 'starttls', ignoreTLS: !e.TLS,
    tls: { ca: fs.readFileSync(e.CA) }, auth: e.AUTH_USER ? { user: e.AUTH_USER, pass: e.AUTH_PASSWORD } : undefined });
transport.sendMail({ from: e.FROM, to: e.TO, subject: 'nodemailer', text: fs.readFileSync(e.BODY, 'utf8') })
    .then(info => console.log(info.response), error => { console.log(error.message); process.exit(1); });
